"""What programs for CuTe DSL write in MLIR by hand, as far as ferrule has it: pieces of PTX.

It stands for `cutlass._mlir`, its `dialects` and `ir`: `llvm.inline_asm` is `fe.arch.inline_ptx`,
`T` has the types of results.  There is no MLIR behind it, a value is the number or vector itself;
any other name is an error.
"""

from __future__ import annotations

import enum
from typing import Any, Final

from ferrule import specs
from ferrule.compiler.errors import NoSuchNameError
from ferrule.cutlass import names
from ferrule.language.faces import arch, maths, threads
from ferrule.language.faces.base import Pointer
from ferrule.language.faces.inline import inline_ptx
from ferrule.specs.deferred import dataclass


class AsmDialect(enum.Enum):
    """The two ways in which LLVM's assembly is written; PTX has one."""

    AD_ATT = 0
    AD_Intel = 1


def inline_asm(
    res: Any,
    operands_: Any,
    asm_string: str,
    constraints: str,
    *,
    has_side_effects: bool = False,
    is_align_stack: bool = False,
    asm_dialect: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """`fe.arch.inline_ptx`: a result, and operands that are numbers."""
    return inline_ptx(asm_string, res, *operands_, constraints=constraints)


class _Types:
    """Types of results, by MLIR's names: `T.i32()`."""

    _known: Final = {
        "bool": specs.Boolean,
        "i8": specs.Int8,
        "i16": specs.Int16,
        "i32": specs.Int32,
        "i64": specs.Int64,
        "f16": specs.Float16,
        "bf16": specs.BFloat16,
        "f32": specs.Float32,
        "f64": specs.Float64,
    }

    def __getattr__(self, name: str) -> Any:
        if name not in self._known:
            raise NoSuchNameError(names.missing("cutlass.cutlass_dsl.T", name))
        return lambda: self._known[name]


T: Final = _Types()


class Value:
    """A value in an object of a program's class.  A number of a compiled function is itself."""

    def __init__(self, value: Any, **_: Any) -> None:
        self._value: Any = value._value if isinstance(value, Value) else value

    def __extract_mlir_values__(self) -> list[Any]:
        return [self._value]

    def __new_from_mlir_values__(self, values: Any) -> Any:
        return type(self)(values[0])


@dataclass(frozen=True, slots=True)
class PointerType:
    """An address in memory; `get()` makes it."""

    @staticmethod
    def get(address_space: int = 0, **_: Any) -> PointerType:
        """The type of addresses, of memory of any space."""
        if address_space != 0:
            raise ValueError(f"PointerType.get: the address space is 0, but got {address_space}")
        return PointerType()

    def __ferrule_spec__(self, name: str) -> specs.Pointer:
        return specs.Pointer(name, specs.Uint8)


@dataclass(frozen=True, slots=True)
class StructType:
    """A struct of C, whose fields have these types; `get_literal([...])` makes it."""

    body: tuple[Any, ...]

    @staticmethod
    def get_literal(elements: Any, *, packed: bool = False, **_: Any) -> StructType:
        """A struct without a name; its fields lie as the compiler of C lays them out."""
        if packed:
            raise ValueError("StructType.get_literal: a packed struct is not known")
        return StructType(tuple(elements))

    def __ferrule_spec__(self, name: str) -> specs.Tuple:
        return specs.Tuple(name, tuple(_spec(each, str(i)) for i, each in enumerate(self.body)))


def _spec(of: Any, name: str) -> specs.Param:
    if isinstance(of, specs.DType):
        return specs.Scalar(name, of)
    if isinstance(of, (PointerType, StructType)):
        return of.__ferrule_spec__(name)
    raise TypeError(f"StructType.get_literal: {of!r} is no type of a field")


def extractvalue(
    res: Any, container: Any, position: Any, *, loc: Any = None, ip: Any = None
) -> Any:
    """The field of a struct at a path of places, such as `[1]`, whose type is `res`."""
    found = container._value if isinstance(container, Value) else container
    for place in position:
        found = found[place]
    if not _is_of(found, res):
        raise TypeError(f"extractvalue: the field {list(position)} is not of the type {res}")
    return found


def _is_of(value: Any, wanted: Any) -> bool:
    """Whether a field of a struct has this type."""
    if isinstance(wanted, StructType):
        return isinstance(value, tuple) and len(value) == len(wanted.body)
    if isinstance(wanted, PointerType):
        return isinstance(value, Pointer)
    return isinstance(value, wanted)


class IntegerType:
    """Types of integers: a dtype."""

    @staticmethod
    def get_signless(width: int) -> Any:
        """The dtype of so many bits; 1 is a Boolean."""
        found = _Types._known.get("bool" if width == 1 else f"i{width}")
        if found is None:
            raise ValueError(f"there is no integer of {width} bits")
        return found


def extract(vector: Any, dynamic_position: Any, static_position: Any, **_: Any) -> Any:
    """An element of a vector, at a place that is known while compiling."""
    if dynamic_position or len(static_position) != 1:
        raise TypeError("vector.extract: the place is one number that is known while compiling")
    return vector[static_position[0]]


def mbarrier_try_wait_parity_timelimit(
    addr: Any, phase: Any, time_limit: Any, *, loc: Any = None, ip: Any = None
) -> Any:
    """`fe.arch.mbarrier_try_wait`, which waits as long as the hardware does by itself."""
    return arch.mbarrier_try_wait(addr, phase)


class CpAsyncBulkTensorLoadMode(enum.Enum):
    """Which elements of a tensor a copy by a tensor map loads: a box."""

    TILE = 0


def elect_sync(*, loc: Any = None, ip: Any = None) -> Any:
    """`fe.arch.elect_one()`, a Boolean."""
    return threads.elect_one()


def CpAsyncBulkTensorGlobalToSharedClusterOp(
    dstMem: Any,
    tmaDescriptor: Any,
    coordinates: Any,
    mbar: Any,
    im2colOffsets: Any,
    *,
    predicate: Any = True,
    loadMode: Any = CpAsyncBulkTensorLoadMode.TILE,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """PTX's `cp.async.bulk.tensor` of a box into shared memory, by a tensor map in global memory.

    `dstMem`, `mbar`: pointers into shared memory.  The lanes whose predicate holds each copy a box.
    Known to GPUs alone; `fe.copy(..., tma_desc_ptr=p)` is known everywhere.
    """
    if len(im2colOffsets) > 0 or not 1 <= len(coordinates) <= 5:
        raise TypeError("CpAsyncBulkTensorGlobalToSharedClusterOp copies boxes of 1 to 5 dims")
    at = ", ".join(f"${4 + place}" for place in range(len(coordinates)))
    text = (
        f"{{ .reg .pred p; setp.ne.b32 p, ${4 + len(coordinates)}, 0; "
        f"@p cp.async.bulk.tensor.{len(coordinates)}d.shared::cluster.global"
        f".mbarrier::complete_tx::bytes [$1], [$2, {{{at}}}], [$3]; }} mov.b32 $0, 0;"
    )
    to, by, barrier = dstMem.toint(), tmaDescriptor.toint(), mbar.toint()
    inline_ptx(text, specs.Int32, to, by, barrier, *coordinates, specs.Int32(predicate))


def exp(x: Any, **_: Any) -> Any:
    """`fe.math.exp`."""
    return maths.exp(x)


def log(x: Any, **_: Any) -> Any:
    """`fe.math.log`."""
    return maths.log(x)


__getattr__ = names.resolver("cutlass._mlir")
