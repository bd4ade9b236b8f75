"""`Apart`: checks that tensors do not overlap, for code that was compiled with this assumption.

    Sequence([Apart(y, read=[x, w]), CFunction("scale", [y.data, x.data, w.data, n], code=code)])

is for `void scale(float* restrict y, const float* restrict x, const float* restrict w, long n)`.
"""

from __future__ import annotations

import collections.abc
from itertools import combinations, product
from typing import Final, TypeAlias

from llvmlite import ir

from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.conventions.arguments import listed, shown
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.protocol import PlainStep
from ferrule.runtime.llvm.layouts import I64
from ferrule.specs import Condition, Data, Dim, Tensor, equal, maximum, minimum
from ferrule.specs import params as kinds
from ferrule.specs.conditions import checked_condition
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import make

Memory: TypeAlias = "Tensor | Data | kinds.Optional"
_HINT: Final = "the code was compiled for arrays that share no memory"


@dataclass(frozen=True, slots=True, init=False)
class Apart(PlainStep):
    """Raises an error in the call if tensors share memory; calls nothing.

        Apart(y, z, read=[x, w])

    Each of `y` and `z`, which the code writes, must share no byte with the other or with the
    tensors in `read`, which the code only reads: `x` and `w` may be the same.  This is what
    `noalias` and `restrict` promise.  A tensor stands for itself, its `.data`, or an optional one,
    which overlaps nothing where it was not given.  The memory of a tensor is from its first byte to
    its last, with the gaps that its strides leave; an empty one has none.  What the call allocates
    itself, its results and temporaries, needs no such check, and may be named.

    The error is a ValueError that names both and shows `hint`.  Raises TypeError for what is no
    tensor, ValueError for fewer than two, and for one that is named twice.
    """

    pairs: tuple[tuple[Tensor, Tensor], ...]
    hint: str
    when: Condition | None

    def __init__(
        self,
        *written: Memory,
        read: collections.abc.Sequence[Memory] = (),
        hint: str = _HINT,
        when: Condition | None = None,
    ) -> None:
        given = listed(read, "Apart: the tensors of `read`")
        tensors = [_tensor_of(each) for each in (*written, *given)]
        for position, tensor in enumerate(tensors):
            if any(tensor is other for other in tensors[:position]):
                raise ValueError(f"Apart: {tensor.name} is named twice, and overlaps itself")
        changed, rest = tensors[: len(written)], tensors[len(written) :]
        pairs = (*combinations(changed, 2), *product(changed, rest))
        if not pairs:
            raise ValueError("Apart: expected a tensor that is written, and another: Apart(y, x)")
        self._put(pairs, hint, when)

    def _put(
        self,
        pairs: tuple[tuple[Tensor, Tensor], ...],
        hint: str,
        when: Condition | None,
    ) -> None:
        if not isinstance(hint, str):
            raise TypeError(f"Apart: hint must be a text, but got {shown(hint)}")
        object.__setattr__(self, "pairs", pairs)
        object.__setattr__(self, "hint", hint)
        object.__setattr__(self, "when", None if when is None else checked_condition(when))

    @classmethod
    def of_pairs(
        cls,
        pairs: collections.abc.Iterable[tuple[Tensor, Tensor]],
        *,
        hint: str = _HINT,
        when: Condition | None = None,
    ) -> Apart:
        """A check of exactly these pairs, possibly none."""
        made = cls.__new__(cls)
        made._put(tuple(pairs), hint, when)
        return made

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        for one, other in self.pairs:
            call.say(f"check that {one.name} and {other.name} share no memory")
        require_apart(call, self.pairs, self.hint)
        for left in dict.fromkeys(left.name for left, _ in self.pairs):
            others = ", ".join(right.name for each, right in self.pairs if each.name == left)
            call.assume(f"{left} shares no memory with {others}")


def apart_of(given: collections.abc.Sequence[Memory]) -> Apart:
    """The check that these tensors share no memory, no check for an empty list.  Raises as
    `Apart`."""
    tensors = listed(given, "apart")
    return Apart(*tensors) if tensors else Apart.of_pairs([])


def require_apart(
    call: Call, pairs: collections.abc.Iterable[tuple[Tensor, Tensor]], hint: str
) -> None:
    """Raise a ValueError with this hint in a call in which the tensors of a pair overlap, judged by
    their ranges of memory."""
    ranges: dict[int, _Range] = {}
    for pair in pairs:
        if any(map(call.makes, pair)):
            continue
        for each in pair:
            if id(each) not in ranges:
                ranges[id(each)] = _Range.of(call, each)
        left, right = (ranges[id(each)] for each in pair)
        names = " and ".join(literal(each.name) for each in pair)
        message = f"{names} overlap in memory, expected arrays apart: {literal(hint)}"
        call.refuse(left.meets(call, right), Fault("ValueError", message))


@dataclass(frozen=True, slots=True)
class _Range:
    """The address of a tensor's first byte and the address after its last, i64, and whether there
    is any byte, i1."""

    low: ir.Value
    high: ir.Value
    some: ir.Value

    @classmethod
    def of(cls, call: Call, tensor: Tensor) -> _Range:
        e = call.emitter
        at = call.address(tensor.data)
        first = e.builder.ptrtoint(at, I64)
        low, high = (call.size(end, f"the bytes of {tensor.name}") for end in ends(tensor))
        some = e.not_(call.condition(equal(tensor.numel, 0)))
        there = e.not_(e.is_null(at))
        return cls(
            e.binary("add", first, low), e.binary("add", first, high), e.binary("and", some, there)
        )

    def meets(self, call: Call, other: _Range) -> ir.Value:
        """Whether both ranges have a byte in common, i1."""
        e = call.emitter
        # Unsigned: addresses with the highest bit set are not below the others.
        below, above = e.icmp("ult", self.low, other.high), e.icmp("ult", other.low, self.high)
        both = e.binary("and", self.some, other.some)
        return e.binary("and", e.binary("and", below, above), both)


def ends(tensor: Tensor) -> tuple[Dim, Dim]:
    """The start and the end of a tensor, in bytes relative to its first element."""
    first: Dim = 0
    last: Dim = 0
    for size, stride in zip(tensor.shape, tensor.strides, strict=True):
        reach = make("mul", make("sub", size, 1), stride)
        first = make("add", first, minimum(0, reach))
        last = make("add", last, maximum(0, reach))
    end = make("add", last, 1)
    if tensor.packed:  # two elements in each byte
        return make("floordiv", first, 2), make("ceildiv", end, 2)
    item = tensor.dtype.itemsize
    return make("mul", first, item), make("mul", end, item)


def _tensor_of(given: object) -> Tensor:
    """The tensor behind an argument.  Raises TypeError if there is none."""
    match given:
        case Tensor():
            return given
        case Data(tensor=tensor) | kinds.Optional(item=Tensor() as tensor):
            return tensor
    raise TypeError(
        f"Apart: expected tensors, or the .data of tensors, but got {shown(given)}"
        + (": say which are read alone as read=[…]" if isinstance(given, (list, tuple)) else "")
    )
