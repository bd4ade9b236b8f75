"""The promises of LLVM IR about its arguments: compared with the specs when a function is built,
and checked in the call if the specs do not imply them.

* `align`, of the parameter or of accesses at known distances from it: the spec must promise as
  much, or the build is refused.
* A written array must not be read-only in the spec.
* `noalias`: arrays of which one is written must not share memory; this includes functions that the
  code calls with such arrays.
* `nonnull`, `dereferenceable`: an address must not be null, with as many bytes behind it.
* `range`: a number must be in the range.
* `nofpclass`: a number must not be NaN, or not infinite.
* `signext`, `zeroext`: the sign of an integer must match its dtype.

The checks of a call are listed in the function's documentation and notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import gcd
from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.conventions.apart import ends, require_apart
from ferrule.compiler.conventions.arguments import Null
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.c.host_arguments import (
    CArgument,
    OnStack,
    Reference,
    addresses,
    are_signed,
    extensions,
)
from ferrule.compiler.conventions.c.outs import Out
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.hostcode.promises import Promised
from ferrule.compiler.support.entries import ALIGNMENT
from ferrule.compiler.wrapper.leaves import first_slots
from ferrule.runtime.llvm.layouts import I64, PTR
from ferrule.specs import Data, Pointer, Tensor, equal
from ferrule.specs import params as kinds
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import make

_CHECKED_CLASSES: Final = frozenset({"nan", "inf", "pinf", "ninf"})
_FLOATS: Final = (ir.FloatType, ir.DoubleType)
_HINT: Final = "the LLVM IR was compiled for arrays that share no memory (noalias)"


@dataclass(frozen=True, slots=True)
class _Given:
    """A value passed to a function: its argument, the tensor address that it is (or None), its
    promises, and whether it is a signed integer."""

    what: str
    argument: CArgument
    data: Data | None
    promised: Promised
    is_signed: bool = True

    @property
    def name(self) -> str:
        """Its name in errors."""
        argument = self.argument if self.data is None else self.data.tensor
        return str(getattr(argument, "name", self.what))

    def place(self, call: Call) -> str:
        """The address in errors: a tensor's name for its first element."""
        if self.data is None or self.data.offset == 0:
            return self.name
        return f"{self.name}.data.byte_offset({call.signature.format(self.data.offset)})"


def kept(
    call: Call,
    name: str,
    arguments: Sequence[CArgument],
    values: Sequence[ir.Value],
    promises: Sequence[Promised],
    seen: frozenset[int],
) -> list[ir.Value]:
    """The values of a function's arguments in the form that its promises require, after emitting
    the checks.  `seen` are the tensors whose addresses earlier calls got, by identity.

    Raises CompileError for promises that no call can keep, and for an alignment that no spec
    promises.
    """
    rows = [
        (f"argument #{position} of {name}", argument, data)
        for position, argument in enumerate(arguments)
        for data in addresses(argument)
    ]
    ways = [each for argument in arguments for each in extensions(argument)]
    for (what, _, _), way, said in zip(rows, ways, promises, strict=False):
        _check_extension(call, name, what, way, said)
    signs = [each for argument in arguments for each in are_signed(argument)]
    given = [
        _Given(*row, each, signed) for row, each, signed in zip(rows, promises, signs, strict=False)
    ]
    checked = [_checked(call, name, *pair) for pair in zip(given, values, strict=False)]
    _check_apart(call, name, given)
    for each in given:
        _remark(call, name, each, seen)
    return [*checked, *values[len(checked) :]]


def _checked(call: Call, name: str, given: _Given, value: ir.Value) -> ir.Value:
    if value.type != PTR:
        _check_limits(call, given, value)
        _check_classes(call, name, given, value)
        return value
    _check_writes(call, name, given)
    if max(given.promised.align, given.promised.assumes) > 1:
        _check_alignment(call, name, given, value)
    if given.promised.is_there:
        value = _there(call, name, given, value)
    if given.promised.bytes:
        _check_bytes(call, name, given, value)
    return value


# ---- numbers ----


def _check_extension(call: Call, name: str, what: str, way: str, promised: Promised) -> None:
    """`signext`, `zeroext`: raise CompileError for an integer of the other sign."""
    if not way or not promised.extends or way == promised.extends:
        return
    sign, other = ("a sign", "int") if promised.extends == "signext" else ("no sign", "uint")
    raise CompileError(
        Diagnostic(
            f"{call.signature.name}: {name} takes {what} as an integer with {sign} "
            f"({promised.extends}), but its dtype says otherwise",
            hint=f"give it a dtype {other}…, such as conventions.cast(…, '{other}8')",
        )
    )


def _check_limits(call: Call, given: _Given, value: ir.Value) -> None:
    """`range`: from the first number up to the second, exclusive; it wraps around if that is
    less."""
    if given.promised.limits is None or not isinstance(value.type, ir.IntType):
        return
    e, (bits, low, high) = call.emitter, given.promised.limits
    if value.type.width > bits:  # a bool is passed as a byte
        value = e.builder.trunc(value, ir.IntType(bits))
    first, count = (ir.Constant(value.type, each % (1 << bits)) for each in (low, high - low))
    # One unsigned comparison for both ends, also of a range that wraps around.
    outside = e.icmp("uge", e.binary("sub", value, first), count)
    within = _intervals(given.promised.limits, given.is_signed)
    got = "{}" if given.is_signed else "{unsigned}"
    text = f"{literal(given.name)} must be in {within} for the LLVM IR (range), but got {got}"
    widened = e.builder.sext if given.is_signed else e.builder.zext
    shown = value if value.type.width == 64 else widened(value, I64)
    call.refuse(outside, Fault("ValueError", text), [shown])
    call.assume(f"{given.name} is in {within}")


def _intervals(limits: tuple[int, int, int], is_signed: bool) -> str:
    """The numbers of a range as a signed or unsigned integer: two intervals if the range wraps
    around."""
    bits, low, high = limits
    count = 1 << bits
    least = -(count // 2) if is_signed else 0
    first, last = ((each - least) % count + least for each in (low, high - 1))
    if first <= last:
        return f"[{first}, {last + 1})"
    return f"[{least}, {last + 1}) or [{first}, {least + count})"


def _check_classes(call: Call, name: str, given: _Given, value: ir.Value) -> None:
    """`nofpclass`: no NaN, not infinite; other classes cannot be checked."""
    classes = given.promised.classes
    if not classes:
        return
    if not set(classes) <= _CHECKED_CLASSES or not isinstance(value.type, _FLOATS):
        raise CompileError(
            Diagnostic(
                f"{call.signature.name}: {name} takes for granted what nobody checks of "
                f"{given.what}, nofpclass({' '.join(classes)})",
                hint="leave nofpclass out; of float32 and float64, nan and inf are checked",
            )
        )
    b = call.emitter.builder
    if "nan" in classes:
        message = f"{literal(given.name)} is NaN, which the LLVM IR does not take (nofpclass)"
        call.refuse(b.fcmp_unordered("uno", value, value), Fault("ValueError", message))
        call.assume(f"{given.name} is not NaN")
    for word, number in (("pinf", "inf"), ("ninf", "-inf")):
        if {word, "inf"} & set(classes):
            found = b.fcmp_ordered("==", value, ir.Constant(value.type, float(number)))
            message = (
                f"{literal(given.name)} is {number}, which the LLVM IR does not take (nofpclass)"
            )
            call.refuse(found, Fault("ValueError", message))
            call.assume(f"{given.name} is not {number}")


# ---- addresses ----


def _check_writes(call: Call, name: str, given: _Given) -> None:
    tensor = None if given.data is None else given.data.tensor
    if tensor is not None and tensor.read_only and given.promised.writes:
        raise CompileError(
            Diagnostic(
                f"{call.signature.name}: {name} writes through {given.what}, but the spec of "
                f"{given.name} says that it is only read (read_only=True)",
                hint="leave read_only out of the spec, or hand over another array",
            )
        )


def _check_alignment(call: Call, name: str, given: _Given, value: ir.Value) -> None:
    wanted = max(given.promised.align, given.promised.assumes)
    promised = _promised_alignment(call, given)
    if promised is None or (promised == 1 and given.promised.align == 1 and given.data is None):
        e = call.emitter
        rest = e.binary("and", e.builder.ptrtoint(value, I64), e.const_i64(wanted - 1))
        place = given.place(call)
        message = f"{literal(place)} is not aligned to {wanted} bytes, as the LLVM IR wants it"
        call.refuse(e.icmp("ne", rest, e.const_i64(0)), Fault("ValueError", message))
        call.assume(f"{place} is {wanted}-byte aligned")
    elif promised % wanted:
        raise CompileError(
            Diagnostic(
                f"{call.signature.name}: {name} takes {given.what} at a multiple of {wanted} bytes "
                f"(align {wanted}), but {given.name} is promised at one of {promised} alone",
                hint=f"say so in its spec, align={wanted}: it is checked in every call",
            )
        )


def _promised_alignment(call: Call, given: _Given) -> int | None:
    """The alignment of an address; None if it is known only in the call."""
    match given.argument:
        case Null():
            return 4096  # 0 is a multiple of every alignment that code asks for
        case OnStack():
            return 8  # it lies in whole words of the stack
        case Pointer(align=align):
            return align
        case Out(alignment=size):
            return size
        case Reference(value=value):
            return max(8, getattr(value, "align", 8))
    if given.data is None or not isinstance(given.data.offset, int):
        return None
    tensor = given.data.tensor
    align = max(tensor.align, ALIGNMENT if call.makes(tensor) else 1)
    return gcd(align, given.data.offset)


def _there(call: Call, name: str, given: _Given, value: ir.Value) -> ir.Value:
    """An address that is not null: the null address of an empty array is replaced by another one,
    from which nothing is read."""
    e = call.emitter
    if isinstance(given.argument, Null):
        raise CompileError(
            f"{call.signature.name}: {name} takes no null pointer as {given.what} (nonnull)"
        )
    nothing = e.is_null(value)
    if given.data is not None and not _is_optional(call, given.data.tensor):
        some = e.builder.inttoptr(e.const_i64(max(ALIGNMENT, given.promised.align)), PTR)
        return e.select(nothing, some, value)
    message = f"{literal(given.name)} is null, which the LLVM IR does not take (nonnull)"
    call.refuse(nothing, Fault("ValueError", message))
    call.assume(f"{given.name} is not null")
    return value


def _is_optional(call: Call, tensor: Tensor) -> bool:
    found = (param for param, _ in first_slots(call.signature.params))
    return any(isinstance(each, kinds.Optional) and each.item is tensor for each in found)


def _check_bytes(call: Call, name: str, given: _Given, value: ir.Value) -> None:
    """`dereferenceable`: that many bytes can be read behind an address."""
    e, wanted = call.emitter, given.promised.bytes
    known = getattr(given.argument, "size_in_memory", None)
    if known is not None and known < wanted:
        raise _too_short(call, name, given, known)
    if given.data is None:
        return
    tensor = given.data.tensor
    end = make("sub", ends(tensor)[1], given.data.offset)
    if isinstance(end, int) and isinstance(tensor.numel, int):
        there = 0 if tensor.numel == 0 else end
        if there < wanted and not _is_optional(call, tensor):
            raise _too_short(call, name, given, there)
    size = call.size(end, f"the bytes of {tensor.name}")
    size = e.select(call.condition(equal(tensor.numel, 0)), e.const_i64(0), size)
    short = e.icmp("slt", size, e.const_i64(wanted))
    if given.promised.may_be_null:
        short = e.binary("and", short, e.not_(e.is_null(value)))
    message = (
        f"{literal(given.name)} has {{}} bytes, but the LLVM IR takes for granted that there are "
        f"{wanted} (dereferenceable)"
    )
    call.refuse(short, Fault("ValueError", message), [size])
    if not isinstance(end, int) or not isinstance(tensor.numel, int):
        maybe = ", or is null" if given.promised.may_be_null else ""
        call.assume(f"{given.place(call)} has {wanted} bytes{maybe}")


def _too_short(call: Call, name: str, given: _Given, there: int) -> CompileError:
    return CompileError(
        f"{call.signature.name}: {name} takes for granted that {given.what} has "
        f"{given.promised.bytes} bytes (dereferenceable), but {given.name} has {there}"
    )


# ---- arrays apart ----


def _check_apart(call: Call, name: str, given: Sequence[_Given]) -> None:
    pairs = list(_pairs(given))
    for left, right in pairs:
        if left is right:
            raise CompileError(
                Diagnostic(
                    f"{call.signature.name}: {name} is given {left.name} twice, and takes for "
                    f"granted that what it writes there is in no other array (noalias)",
                    hint="hand over two arrays, or leave noalias out",
                )
            )
    apart = [pair for pair in pairs if not any(map(call.makes, pair))]
    require_apart(call, apart, _HINT)
    for left, right in apart:
        call.assume(f"{left.name} shares no memory with {right.name}")


def _pairs(given: Sequence[_Given]) -> Iterator[tuple[Tensor, Tensor]]:
    """The pairs of tensors of which one is written and one is promised not to alias, each pair
    once.  For two parts of one tensor, the argument that contains them is responsible."""
    found: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}
    for (_, left), (at, right) in combinations(enumerate(given), 2):
        if left.data is None or right.data is None or left.what == right.what:
            continue
        if left.promised.reads_only and right.promised.reads_only:
            continue
        is_apart = left.promised.is_apart or right.promised.is_apart
        if not is_apart and at not in left.promised.apart_from:
            continue
        pair = left.data.tensor, right.data.tensor
        if pair[0] is not pair[1] or left.data.offset == right.data.offset:
            found.setdefault((id(pair[0]), id(pair[1])), pair)
    yield from found.values()


# ---- uninitialised memory ----


def _remark(call: Call, name: str, given: _Given, seen: frozenset[int]) -> None:
    data = given.data
    if data is None or not given.promised.reads_first or not call.makes(data.tensor):
        return
    if id(data.tensor) not in seen and not call.is_filled(data.tensor):
        call.remark(
            f"{name} reads {data.tensor.name} before it writes to it, and nothing is in it at "
            f"first: conventions.Zero({data.tensor.name}) before it fills it with zeros, and for "
            f"results zero=[{data.tensor.name!r}]"
        )
