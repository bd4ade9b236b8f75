"""The description of one parameter: pure data, a closed union of frozen dataclasses.

`Param` lists the kinds.  Whoever treats kinds differently does it with `match` and
`assert_never`, so that a new kind makes the type checker list every place that must know it.

Every kind has a `name` and a `default`: the value where a call gives none, REQUIRED where it must.
Inside a tuple the name is the item's position, or the field's name of a named tuple or dataclass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal, TypeAlias, get_args

from ferrule.specs.devices import as_device_type
from ferrule.specs.dtypes import DType, Float4E2M1FN, as_dtype
from ferrule.specs.expr import Dim, Sym, is_dim, is_name, make, sym_int64


class _Required(Enum):
    REQUIRED = "required"

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required.REQUIRED

TupleKind = Literal["Shape", "Stride", "Coord", "Tile", "IntTuple"]


class AddressSpace(Enum):
    """Where a pointer points, under CuTe's names."""

    generic = "generic"
    gmem = "gmem"
    smem = "smem"
    rmem = "rmem"


@dataclass(frozen=True, slots=True)
class Data:
    """The address of the first element of a tensor parameter, as a calling convention names it."""

    parameter: str


@dataclass(frozen=True, slots=True, init=False)
class Tensor:
    """A tensor: a DLTensor at the call, of type index 7 or 70.

    `shape` and `strides` hold ints and expressions, strides in elements; without strides the
    tensor is compact and row-major.  `device` is a name of `devices.DEVICE_CODES`, or None for the
    device of the target; `device_id` an index, or None for any.  `align` is in bytes, a power of
    two; the element size by default.  `packed`: the elements are 4-bit floats, two in each element
    of the DLTensor along the dim of stride 1, whose size there is half of the one here.
    `read_only`: nothing writes to it, so an array that cannot be written is accepted.  `owning`:
    the argument must be a Tensor object (index 70), which outlives the call.
    """

    name: str
    shape: tuple[Dim, ...]
    dtype: DType
    strides: tuple[Dim, ...]
    device: str | None
    align: int
    device_id: int | None
    packed: bool
    read_only: bool
    owning: bool

    def __init__(
        self,
        name: str,
        shape: Sequence[Dim],
        dtype: DType | str,
        *,
        strides: Sequence[Dim] | None = None,
        contiguous: bool | None = None,
        device: str | None = None,
        device_id: int | None = None,
        align: int | None = None,
        read_only: bool = False,
        owning: bool = False,
        packed: bool | None = None,
    ) -> None:
        """`contiguous=False` without strides stands for any strides, `True` for compact ones."""
        put = object.__setattr__
        put(self, "name", check_name(name))
        put(self, "shape", check_dims("shape", shape))
        put(self, "packed", dtype == PACKED_NAME if packed is None else packed)
        put(self, "dtype", Float4E2M1FN if dtype == PACKED_NAME else as_dtype(dtype))
        put(self, "strides", _chosen_strides(self.shape, strides, contiguous))
        put(self, "device", None if device is None else as_device_type(device))
        put(self, "device_id", None if device_id is None else _check_index(device_id))
        put(self, "align", check_alignment(self.dtype, align))
        put(self, "read_only", bool(read_only))
        put(self, "owning", bool(owning))
        if self.packed:
            check_packed(self)

    @property
    def data(self) -> Data:
        """The address of the first element, for calling conventions."""
        return Data(self.name)

    @property
    def default(self) -> _Required:
        """A tensor has no default."""
        return REQUIRED


@dataclass(frozen=True, slots=True, init=False)
class Scalar:
    """A number: an int, float or bool at the call, in the range of its dtype."""

    name: str
    dtype: DType
    default: bool | int | float | _Required

    def __init__(self, name: str, dtype: DType | str, default: Any = REQUIRED) -> None:
        put = object.__setattr__
        put(self, "name", check_name(name))
        put(self, "dtype", check_scalar_dtype(as_dtype(dtype)))
        put(self, "default", default if default is REQUIRED else self.dtype(default).value)


@dataclass(frozen=True, slots=True, init=False)
class Shape:
    """A flat tuple of integers: an ffi.Shape, or an Array or List of ints at the call.

    `dims` are checked and bound as the sizes of a tensor are; those of a "Stride" or "Coord" may be
    negative.  A nested one is a `Tuple` of these.
    """

    name: str
    dims: tuple[Dim, ...]
    kind: TupleKind
    default: tuple[int, ...] | _Required

    def __init__(
        self,
        name: str,
        dims: Sequence[Dim],
        kind: TupleKind = "Shape",
        default: tuple[int, ...] | _Required = REQUIRED,
    ) -> None:
        put = object.__setattr__
        if kind not in get_args(TupleKind):
            raise ValueError(f"kind must be one of {get_args(TupleKind)}, but got {kind!r}")
        put(self, "name", check_name(name))
        put(self, "dims", check_dims("dims", dims, signed=kind in SIGNED_KINDS))
        put(self, "kind", kind)
        put(self, "default", default)


@dataclass(frozen=True, slots=True)
class Pointer:
    """An address: ctypes.c_void_p, an int, an object with `__tvm_ffi_opaque_ptr__`; None is null.

    `dtype` is what it points to (None: unknown), `align` in bytes.
    """

    name: str
    dtype: DType | None = None
    address_space: AddressSpace = AddressSpace.generic
    align: int = 1
    nullable: bool = True
    default: None | _Required = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.dtype is not None:
            object.__setattr__(self, "dtype", as_dtype(self.dtype))
        check_alignment(self.dtype or as_dtype("uint8"), self.align)


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream's handle: an object of the CUDA stream protocol, an int, or None for the default."""

    name: str
    default: None | _Required = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)


@dataclass(frozen=True, slots=True)
class EnvStream:
    """The caller's current stream, as tvm-ffi knows it; no argument of the call.

    `device` and `device_id` say of which device, where no tensor does.
    """

    name: str
    device: str | None = None
    device_id: int | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.device is not None:
            as_device_type(self.device)

    @property
    def default(self) -> None:
        """A call never gives it."""
        return None


@dataclass(frozen=True, slots=True)
class Tuple:
    """A tuple of parameters: an Array or List at the call, or a named tuple or dataclass.

    `fields`: whether the items' names are those of a named tuple or dataclass.  Items with a
    default may be missing at the end of a named tuple's or dataclass's own constructor, not here.
    """

    name: str
    items: tuple[Param, ...]
    fields: bool = False
    default: Any = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "items", tuple(self.items))
        _refuse_nested_streams(self.name, self.items)


@dataclass(frozen=True, slots=True)
class Optional:
    """A parameter or None."""

    name: str
    item: Param
    default: Any = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)
        _refuse_nested_streams(self.name, (self.item,))
        if isinstance(self.item, (Optional, NoneValue)):
            raise ValueError(f"{self.name}: an Optional of {self.item!r} can be nothing but None")


@dataclass(frozen=True, slots=True)
class Union:
    """One of several parameters, told apart by their type indices at the call."""

    name: str
    members: tuple[Param, ...]
    default: Any = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "members", tuple(self.members))
        _refuse_nested_streams(self.name, self.members)
        if len(self.members) < 2:
            raise ValueError(f"{self.name}: a Union has at least two members")
        check_distinct(self)


@dataclass(frozen=True, slots=True)
class String:
    """Text: raw, small or heap string at the call."""

    name: str
    default: str | _Required = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes: a byte array, small or heap bytes at the call."""

    name: str
    default: bytes | _Required = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)


@dataclass(frozen=True, slots=True)
class DataType:
    """A dtype as a value: a DLDataType, or its name."""

    name: str
    default: Any = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)


@dataclass(frozen=True, slots=True)
class Device:
    """A device as a value: a DLDevice, or its name."""

    name: str
    default: Any = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)


@dataclass(frozen=True, slots=True)
class NoneValue:
    """None, and nothing else."""

    name: str
    default: None | _Required = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that the argument must equal: a bool, int, float or str, and of that very kind.

    Floats are compared by their bits, so NaN equals NaN and 0.0 is not -0.0.
    """

    name: str
    value: bool | int | float | str
    default: Any = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)
        if not isinstance(self.value, (bool, int, float, str)):
            raise TypeError(
                f"{self.name}: a constant is a bool, int, float or str, but got {self.value!r}"
            )
        if type(self.value) is int and not -(1 << 63) <= self.value < 1 << 63:
            raise ValueError(f"{self.name}: a constant int must fit 64 bits, got {self.value}")


@dataclass(frozen=True, slots=True)
class Function:
    """A callback: a function that tvm-ffi can call."""

    name: str
    default: Any = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)


@dataclass(frozen=True, slots=True)
class Array:
    """An ffi.Array of any length; every element is an `item` (None: anything)."""

    name: str
    item: Param | None = None
    default: Any = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)
        check_element(self.name, self.item)


@dataclass(frozen=True, slots=True)
class List:
    """An ffi.List of any length; every element is an `item` (None: anything)."""

    name: str
    item: Param | None = None
    default: Any = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)
        check_element(self.name, self.item)


@dataclass(frozen=True, slots=True)
class Map:
    """An ffi.Map; every key is a `key` and every value a `value` (None: anything)."""

    name: str
    key: Param | None = None
    value: Param | None = None
    default: Any = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)
        check_element(self.name, self.key)
        check_element(self.name, self.value)


@dataclass(frozen=True, slots=True)
class Dict:
    """An ffi.Dict; every key is a `key` and every value a `value` (None: anything)."""

    name: str
    key: Param | None = None
    value: Param | None = None
    default: Any = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)
        check_element(self.name, self.key)
        check_element(self.name, self.value)


@dataclass(frozen=True, slots=True)
class Object:
    """An object of a registered type or of one derived from it, by its type key."""

    name: str
    type_key: str
    default: Any = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)
        if not isinstance(self.type_key, str) or not self.type_key:
            raise ValueError(f"{self.name}: the type key must be a text, but got {self.type_key!r}")


@dataclass(frozen=True, slots=True)
class Module:
    """A tvm-ffi module."""

    name: str
    default: Any = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)


@dataclass(frozen=True, slots=True)
class AnyValue:
    """Any value."""

    name: str
    default: Any = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)


Param: TypeAlias = (
    Tensor
    | Scalar
    | Shape
    | Pointer
    | Stream
    | EnvStream
    | Tuple
    | Optional
    | Union
    | String
    | Bytes
    | DataType
    | Device
    | NoneValue
    | Constant
    | Function
    | Array
    | List
    | Map
    | Dict
    | Object
    | Module
    | AnyValue
)

SIGNED_KINDS: Final = ("Stride", "Coord", "IntTuple")
PACKED_NAME: Final = "float4_e2m1fnx2"
"""The name of two 4-bit floats in a byte, DLPack's float4_e2m1fn with two lanes."""

_SCALARS: Final = {"bool": {1, 2}, "int": {1, 2}, "uint": {1, 2}, "float": {1, 2, 3}}
_CONSTANTS: Final = {bool: {2}, int: {1, 2}, float: {3}, str: {8, 11, 65}}
_STRINGS: Final = frozenset({8, 11, 65})
DYNAMIC: Final = 128
"""The first type index of registered object types; in a union it stands for all of them."""


def type_indices(param: Param) -> frozenset[int]:
    """The type indices of the values that a parameter takes (facts of tvm-ffi's ABI).

    None is in none of them but those of `Optional`, `NoneValue` and `AnyValue`, and no int is a
    pointer here: this is what tells the members of a union apart.
    """
    match param:
        case Tensor(owning=owning):
            return frozenset({70} if owning else {7, 70})
        case Scalar(dtype=dtype):
            return frozenset(_SCALARS[dtype.kind]) | (
                frozenset({78}) if dtype.bits == 64 and dtype.kind == "uint" else frozenset()
            )
        case Shape():
            return frozenset({69, 71, 75})
        case Tuple():
            return frozenset({71, 75})
        case Pointer() | Stream():
            return frozenset({4})
        case EnvStream():
            return frozenset()
        case Optional(item=item):
            return type_indices(item) | {0}
        case Union(members=members):
            return frozenset().union(*(type_indices(member) for member in members))
        case Constant(value=value):
            return frozenset(_CONSTANTS[type(value)])
        case AnyValue():
            return frozenset({*range(80), DYNAMIC})
    return _SINGLE[type(param)]


_SINGLE: Final[Mapping[type, frozenset[int]]] = {
    String: _STRINGS,
    Bytes: frozenset({9, 12, 66}),
    DataType: _STRINGS | {5},
    Device: _STRINGS | {6},
    NoneValue: frozenset({0}),
    Function: frozenset({68}),
    Array: frozenset({71}),
    List: frozenset({75}),
    Map: frozenset({72}),
    Dict: frozenset({76}),
    Module: frozenset({73}),
    Object: frozenset({DYNAMIC}),
}


def check_distinct(union: Union) -> None:
    """Every member of a union takes values that none before it takes, else ValueError."""
    taken: frozenset[int] = frozenset()
    for member in union.members:
        indices = type_indices(member)
        if isinstance(member, (Optional, Union, AnyValue)) or indices <= taken:
            raise ValueError(
                f"{union.name}: the member {member!r} of a Union cannot be told apart from those "
                f"before it by its type"
            )
        taken |= indices


def _refuse_nested_streams(name: str, items: tuple[Param, ...]) -> None:
    if any(isinstance(item, EnvStream) for item in items):
        raise ValueError(f"{name}: an env stream is no argument, so it cannot stand inside another")


_ELEMENTS: Final = (Scalar, String, Bytes, DataType, Device, NoneValue, Constant, Function, Object)


def check_element(name: str, item: Param | None) -> None:
    """The element of a container: a kind that binds no symbol, else ValueError."""
    match item:
        case None | Module() | AnyValue():
            return
        case Array(item=inner) | List(item=inner) | Optional(item=inner):
            check_element(name, inner)
        case Map(key=key, value=value) | Dict(key=key, value=value):
            check_element(name, key)
            check_element(name, value)
        case Tensor(shape=shape, strides=strides):
            if any(not isinstance(dim, int) for dim in (*shape, *strides)):
                raise ValueError(f"{name}: a tensor in a container has a static shape")
        case _ if not isinstance(item, _ELEMENTS):
            raise ValueError(f"{name}: {type(item).__name__} cannot be an element of a container")


def check_name(name: str) -> str:
    """A parameter's name: an identifier, or the position of an item.  Raises ValueError."""
    if not (isinstance(name, str) and (is_name(name) or name.isdecimal())):
        raise ValueError(f"a parameter's name must be an identifier, but got {name!r}")
    return name


def check_scalar_dtype(dtype: DType) -> DType:
    """A dtype that a scalar parameter can have.  Raises ValueError for storage types."""
    if dtype.kind == "complex" or dtype.bits < 8 or (dtype.kind == "float" and dtype.bits < 16):
        raise ValueError(f"a scalar parameter cannot be {dtype.name}: that is a storage type")
    return dtype


def check_dims(what: str, dims: Sequence[Dim], *, signed: bool = False) -> tuple[Dim, ...]:
    """Sizes or strides as a tuple.  Raises TypeError and ValueError for what is none."""
    if isinstance(dims, (str, bytes)) or not isinstance(dims, Sequence):
        raise TypeError(f"{what} must be a tuple of ints and symbolic ints, but got {dims!r}")
    for i, dim in enumerate(dims):
        if not is_dim(dim):
            raise TypeError(f"{what}[{i}] must be an int or a symbolic int, but got {dim!r}")
        if isinstance(dim, int) and dim < 0 and not signed:
            raise ValueError(f"{what}[{i}] must not be negative, but got {dim}")
        if isinstance(dim, int) and not -(1 << 63) <= dim < 1 << 63:
            raise ValueError(f"{what}[{i}] must fit 64 bits, but got {dim}")
    return tuple(dims)


def check_alignment(dtype: DType, align: int | None) -> int:
    """An alignment in bytes.  Raises ValueError for what is no power of two up to 4096."""
    if align is None:
        return dtype.itemsize
    if isinstance(align, bool) or not isinstance(align, int):
        raise TypeError(f"alignment must be an int of bytes, but got {align!r}")
    if not 1 <= align <= 4096 or align & (align - 1):
        raise ValueError(f"alignment must be a power of two from 1 to 4096, but got {align}")
    return align


def _check_index(index: int) -> int:
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < 1 << 31:
        raise ValueError(f"a device index must be an int of at least 0, but got {index!r}")
    return index


def _chosen_strides(
    shape: tuple[Dim, ...], strides: Sequence[Dim] | None, contiguous: bool | None
) -> tuple[Dim, ...]:
    if strides is None and contiguous is False:
        return tuple(sym_int64() for _ in shape)
    compact = compact_strides(shape, tuple(reversed(range(len(shape)))))
    if strides is None:
        return compact
    checked = check_dims("strides", strides, signed=True)
    if len(checked) != len(shape):
        raise ValueError(
            f"strides must have as many entries as shape, {len(shape)}, but got {len(checked)}"
        )
    if contiguous and checked != compact:
        raise ValueError("a contiguous tensor is compact and row-major: leave strides out")
    return checked


def check_packed(tensor: Tensor) -> None:
    """A packed tensor has a dim of stride 1 whose size is known to be even, else ValueError."""
    if tensor.dtype is not Float4E2M1FN:
        raise ValueError(f"{tensor.name}: only 4-bit floats are packed, not {tensor.dtype.name}")
    unit = [axis for axis, stride in enumerate(tensor.strides) if stride == 1]
    if not unit:
        raise ValueError(f"{tensor.name}: a packed tensor needs a dim of stride 1")
    for axis, dim in enumerate((*tensor.shape, *tensor.strides)):
        if axis - len(tensor.shape) in unit or (axis < len(tensor.shape) and axis not in unit[:1]):
            continue
        if not _is_even(dim):
            raise ValueError(
                f"{tensor.name}: two elements share a byte, so the size and strides "
                f"of a packed tensor must be even; give the symbol divisibility=2"
            )


def _is_even(dim: Dim) -> bool:
    match dim:
        case int():
            return dim % 2 == 0
        case Sym(divisibility=divisibility):
            return divisibility % 2 == 0
    if dim.op == "mul":
        return _is_even(dim.lhs) or _is_even(dim.rhs)
    return dim.op in ("add", "sub") and _is_even(dim.lhs) and _is_even(dim.rhs)


def compact_strides(shape: Sequence[Dim], order: Sequence[int]) -> tuple[Dim, ...]:
    """Strides without gaps; `order[i]` is the rank of dim i, the lowest varies fastest.

    For shape (2, 3, 4): order (0, 1, 2) gives (1, 2, 6), column-major; (2, 1, 0) gives (12, 4, 1).
    Raises ValueError for an order that is no permutation of the dims.
    """
    if sorted(order) != list(range(len(shape))):
        raise ValueError(
            f"stride_order must be a permutation of {tuple(range(len(shape)))}, but got {order!r}"
        )
    strides: list[Dim] = [1] * len(shape)
    running: Dim = 1
    for axis in sorted(range(len(shape)), key=lambda axis: order[axis]):
        strides[axis] = running
        running = make("mul", running, shape[axis])
    return tuple(strides)
