"""Calls of functions that MLIR lowered: tensors as its memref descriptors.

    Memref("matmul", [sig["a"], sig["b"], sig["c"]], code=HostCode.from_llvm(text))

A descriptor is `{allocated, aligned, offset, sizes[rank], strides[rank]}`, pointers and i64, see
MLIR's "LLVM IR Target" page.  A function with `llvm.emit_c_interface` has a twin,
`_mlir_ciface_<name>`, that takes pointers to them; the function itself takes each member as a
separate argument, or, if it was lowered with bare pointers, only the address of the data.
"""

from __future__ import annotations

import collections.abc
from dataclasses import replace
from math import prod
from typing import ClassVar, Final, Literal, TypeAlias

from llvmlite import ir

from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.conventions.arguments import Cast, listed, shown
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.c.functions import CFunction
from ferrule.compiler.conventions.c.host_arguments import CArgument, OnStack
from ferrule.compiler.conventions.c.returns import ReturnCode, Returns
from ferrule.compiler.conventions.memref_results import Results
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.hostcode import HostCode
from ferrule.runtime.llvm.layouts import I64, PTR
from ferrule.specs import (
    Compound,
    Condition,
    Data,
    Dim,
    DType,
    Int64,
    Param,
    Scalar,
    Sym,
    Tensor,
    as_dtype,
)
from ferrule.specs import params as kinds
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import is_dim, make
from ferrule.specs.params.numbers import check_scalar_dtype

Interface: TypeAlias = Literal["c", "expanded", "bare"]
_C_PREFIX: Final = "_mlir_ciface_"


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A tensor as a descriptor, in the form of the interface.

    `inner`: the elements of the memref are vectors, which have so many of the tensor's last dims.
    """

    word: ClassVar[str] = "memref"
    tensor: Tensor
    interface: Interface
    inner: int = 0

    def types(self) -> list[ir.Type]:
        """See `HostArgument`."""
        if self.interface != "expanded":
            return [PTR]
        return [PTR, PTR, *[I64] * (1 + 2 * (len(self.tensor.shape) - self.inner))]

    @property
    def addresses(self) -> list[Data | None]:
        """See `hostarguments.addresses`."""
        if self.interface == "c":
            return [None]
        count = len(self.types())
        return [self.tensor.data] * min(count, 2) + [None] * (count - 2)

    def values(self, call: Call, what: str) -> list[ir.Value]:
        """See `HostArgument`."""
        at = call.address(self.tensor.data)
        if self.interface == "bare":
            return [at]
        members = [at, at, call.emitter.const_i64(0), *self._dims(call, what)]
        return members if self.interface == "expanded" else [_stored(call, members)]

    def _dims(self, call: Call, what: str) -> list[ir.Value]:
        sizes, strides = outer(self.tensor, self.inner)
        with call.describing():
            return [
                call.size(dim, f"{name}[{axis}] of {what}")
                for name, dims in (("shape", sizes), ("strides", strides))
                for axis, dim in enumerate(dims)
            ]


@dataclass(frozen=True, slots=True)
class Unranked:
    """A tensor for a parameter of type `memref<*xT>`: its rank, and the address of a descriptor."""

    word: ClassVar[str] = "unranked memref"
    tensor: Tensor
    interface: Interface = "c"

    def __post_init__(self) -> None:
        if not isinstance(self.tensor, Tensor):
            raise TypeError(f"Unranked: expected a Tensor, but got {shown(self.tensor)}")

    def types(self) -> list[ir.Type]:
        """See `HostArgument`."""
        return [PTR] if self.interface == "c" else [I64, PTR]

    def values(self, call: Call, what: str) -> list[ir.Value]:
        """See `HostArgument`."""
        (place,) = Descriptor(self.tensor, "c").values(call, what)
        members = [call.emitter.const_i64(len(self.tensor.shape)), place]
        return [_stored(call, members)] if self.interface == "c" else members


def outer(tensor: Tensor, inner: int) -> tuple[tuple[Dim, ...], tuple[Dim, ...]]:
    """The sizes and strides of a compact tensor in vectors that have so many of its last dims."""
    kept = len(tensor.shape) - inner
    whole = prod(size for size in tensor.shape[kept:] if isinstance(size, int))
    strides = tuple(make("floordiv", each, whole) for each in tensor.strides[:kept])
    return tensor.shape[:kept], strides


def _stored(call: Call, members: collections.abc.Sequence[ir.Value]) -> ir.Value:
    """Store words on the stack; returns their address."""
    e = call.emitter
    place = e.alloca(I64, len(members), name="descriptor")
    for position, value in enumerate(members):
        e.store(value, e.index(place, I64, position))
    return place


@dataclass(frozen=True, slots=True, init=False)
class Memref:
    """Calls a function that MLIR lowered.

    `function` is its name in MLIR.  `interface` is the form of a tensor argument: "c" a pointer to
    its descriptor, for the function's C twin; "expanded" the members one by one; "bare" the address
    of its data.  `Unranked(tensor)` is for an unranked parameter.  A size is an `index`, 64 bits;
    everything else is as for `CFunction`.

    `returns` is as for `CFunction`, or a list with an entry for each result of the function: a
    dtype, or a `specs.Tensor` for a memref that the function allocates with malloc.  The elements
    of such a memref are copied into a tensor of the caller's allocator, with the shape that it has
    in the call; then the memref is freed, unless it is an argument or a constant of the code.  To
    avoid the copy, lower results to parameters (`buffer-results-to-out-params`) and name tensors in
    the `results` of `build`.  Memrefs and several results need interface "c".

    With `raises` the function takes one more pointer, after all others, to a pointer that is null.
    To report an error, the function stores the address of a NUL-terminated text there, which
    outlives the call; then its result is ignored, and the call raises a RuntimeError with that
    text.

    Raises TypeError and ValueError for arguments that cannot be passed in this way; `build` raises
    as for `CFunction`.
    """

    function: CFunction
    interface: Interface
    given: tuple[DType | Tensor, ...]
    tensors: tuple[Tensor, ...]
    raises: bool

    def __init__(
        self,
        function: str,
        arguments: collections.abc.Sequence[CArgument] = (),
        *,
        interface: Interface = "c",
        returns: Returns | collections.abc.Sequence[DType | str | Tensor] = None,
        code: HostCode | None = None,
        when: Condition | None = None,
        raises: bool = False,
    ) -> None:
        put = object.__setattr__
        if interface not in ("c", "expanded", "bare"):
            raise ValueError(
                f"Memref: expected interface='c', 'expanded' or 'bare', got {interface!r}"
            )
        if not isinstance(function, str):
            raise TypeError(f"Memref: expected the name of a function, but got {function!r}")
        name = f"{_C_PREFIX}{function}" if interface == "c" else function
        given = listed(arguments, f"the arguments of {name}")
        values = [
            _argument(argument, interface, f"argument #{position} of {name}")
            for position, argument in enumerate(given)
        ]
        single, several = _returned(name, interface, returns)
        if several and when is not None:
            raise ValueError(f"{name}: a call that depends on a condition can give nothing back")
        put(self, "function", CFunction(name, values, returns=single, code=code, when=when))
        put(self, "interface", interface)
        put(self, "given", several)
        put(self, "tensors", tuple(_tensors(given)))
        put(self, "raises", raises)

    @property
    def when(self) -> Condition | None:
        """See `CallingConvention`."""
        return self.function.when

    def codes(self) -> tuple[DeviceCode, ...]:
        """See `CallingConvention`."""
        return ()

    def results(self) -> tuple[Param, ...]:
        """See `CallingConvention`."""
        if not self.given:
            return self.function.results()
        made = (each if isinstance(each, Tensor) else Scalar("result", each) for each in self.given)
        return (*made, *self.function.results())

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        if not self.given:
            self.function.give(call, self._value(call, self.function))
            return
        layout = Results(self.function.function, self.given)
        place = layout.room(call)
        arguments = [OnStack(place), *self.function.arguments]
        self._value(call, CFunction(self.function.function, arguments, code=self.function.code))
        layout.give(call, place, [call.address(tensor.data) for tensor in self.tensors])
        self.function.give_written(call)

    def _value(self, call: Call, function: CFunction) -> ir.Value:
        """The function's result; with `raises` the call ends if the function reported an error."""
        if not self.raises:
            return function.value(call)
        e, name = call.emitter, self.function.function.removeprefix(_C_PREFIX)
        place = e.alloca(PTR, name="failed")
        e.store(e.null(), place)
        value = replace(function, arguments=(*function.arguments, OnStack(place))).value(call)
        call.steps.add(f"read the error of {name}")
        text = e.load(place, PTR)
        fault = Fault("RuntimeError", f"{literal(name)}: {{text}}")
        failed = e.builder.not_(e.is_null(text))
        call.refuse(failed, fault, [e.builder.ptrtoint(text, I64)])
        return value


def _argument(argument: CArgument, interface: Interface, what: str) -> CArgument:
    match argument:
        case Tensor():
            return Descriptor(argument, interface)
        case Unranked(tensor=tensor):
            if interface == "bare":
                raise ValueError(f"{what}: there are no bare pointers of memrefs without a rank")
            return Unranked(tensor, interface)
        case kinds.Optional(item=Tensor()):
            raise TypeError(f"{what}: a memref is always there, so its tensor cannot be optional")
        case int() | Sym() | Compound() if is_dim(argument):
            return Cast(argument, Int64)
    return argument


def _tensors(arguments: collections.abc.Sequence[CArgument]) -> collections.abc.Iterator[Tensor]:
    for argument in arguments:
        match argument:
            case Tensor():
                yield argument
            case Unranked(tensor=tensor) | Descriptor(tensor=tensor):
                yield tensor


def _returned(
    name: str, interface: Interface, returns: Returns | collections.abc.Sequence[object]
) -> tuple[Returns, tuple[DType | Tensor, ...]]:
    """The result that the C function returns by value, and the results in its result struct."""
    if returns is None or isinstance(returns, (str, DType, ReturnCode)):
        return returns, ()
    several = [returns] if isinstance(returns, Tensor) else listed(returns, f"{name}: `returns`")
    results = tuple(
        each if isinstance(each, Tensor) else check_scalar_dtype(as_dtype(each)) for each in several
    )
    if len(results) == 1 and isinstance(results[0], DType):
        return results[0], ()
    for each in results:
        if isinstance(each, Tensor) and each.device not in (None, "cpu"):
            raise ValueError(
                f"{name}: the memory of {each.name!r} comes from malloc, but its device is "
                f"{each.device!r}"
            )
    if results and interface != "c":
        raise ValueError(
            f"{name}: memrefs and several results come back through interface='c' alone: give the "
            f"function the attribute llvm.emit_c_interface"
        )
    return None, results
