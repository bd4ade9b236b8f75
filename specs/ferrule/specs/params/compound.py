"""Parameters that contain others (tuples, optionals, unions, containers), and the union `Param`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final, TypeAlias, get_args

from typing_extensions import assert_never

from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import is_name
from ferrule.specs.params.addresses import EnvStream, Pointer, Stream
from ferrule.specs.params.base import REQUIRED, Plain, WithTraits, check_name
from ferrule.specs.params.numbers import Constant, Scalar, Shape
from ferrule.specs.params.tensors import Tensor
from ferrule.specs.params.traits import Payload, Traits
from ferrule.specs.params.values import (
    AnyOrTuple,
    AnyValue,
    Bytes,
    DataType,
    Device,
    Function,
    Module,
    NoneValue,
    Object,
    String,
)
from ferrule.specs.typeindex import TypeIndex


@dataclass(frozen=True, slots=True)
class Tuple:
    """A tuple of parameters: an Array or List at the call, or a named tuple or dataclass.

    `fields`: whether the items are the fields of a named tuple or dataclass.  The default of such a
    field belongs to the constructor of that class; a call always gives all items.
    """

    name: str
    items: tuple[Param, ...]
    fields: bool = False
    default: Any = REQUIRED
    indices: ClassVar[frozenset[int]] = frozenset({TypeIndex.ARRAY, TypeIndex.LIST})

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "items", _listed(self.name, self.items))
        _check_inside(self.name, self.items, fields=self.fields)
        names = [item.name for item in self.items] if self.fields else []
        if not all(map(is_name, names)) or len(set(names)) < len(names):
            raise ValueError(f"{self.name}: fields have names of their own, but got {names}")


@dataclass(frozen=True, slots=True)
class Optional:
    """A parameter or None."""

    name: str
    item: Param
    default: Any = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)
        _check_inside(self.name, (self.item,))
        if isinstance(self.item, (Optional, NoneValue)):
            raise ValueError(f"{self.name}: an Optional of {self.item!r} can be nothing but None")

    @property
    def indices(self) -> frozenset[int]:
        """The type indices of the values that it takes."""
        return self.item.indices | {TypeIndex.NONE}


@dataclass(frozen=True, slots=True)
class Union:
    """One of several parameters, told apart by their type indices at the call."""

    name: str
    members: tuple[Param, ...]
    default: Any = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "members", _listed(self.name, self.members))
        _check_inside(self.name, self.members)
        if len(self.members) < 2:
            raise ValueError(f"{self.name}: a Union has at least two members")
        check_distinct(self)

    @property
    def indices(self) -> frozenset[int]:
        """The type indices of the values that it takes."""
        return frozenset().union(*(member.indices for member in self.members))


def _container(word: str, index: int, expected: str) -> Traits:
    """The facts of a container of tvm-ffi, whose class there has the same name."""
    return Traits(
        word,
        Payload.OBJECT,
        frozenset({index}),
        stored=(index,),
        schema=f"ffi.{word}",
        leaves=("ptr",),
        description=f"the {word.lower()}",
        words=(expected,),
        accepted=(f"tvm_ffi.{word}",),
    )


@dataclass(frozen=True, slots=True)
class Elements(WithTraits):
    """The base of containers of any length; every element is an `item` (None: anything)."""

    name: str
    item: Param | None = None
    default: Any = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)
        check_element(self.name, self.item)


@dataclass(frozen=True, slots=True)
class Array(Elements):
    """An ffi.Array of any length; every element is an `item` (None: anything)."""

    traits: ClassVar[Traits] = _container("Array", TypeIndex.ARRAY, "tuple or list")


@dataclass(frozen=True, slots=True)
class List(Elements):
    """An ffi.List of any length; every element is an `item` (None: anything)."""

    traits: ClassVar[Traits] = _container("List", TypeIndex.LIST, "List")


@dataclass(frozen=True, slots=True)
class Pairs(WithTraits):
    """The base of maps; every key is a `key` and every value a `value` (None: anything)."""

    name: str
    key: Param | None = None
    value: Param | None = None
    default: Any = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)
        check_element(self.name, self.key)
        check_element(self.name, self.value)


@dataclass(frozen=True, slots=True)
class Map(Pairs):
    """An ffi.Map; every key is a `key` and every value a `value` (None: anything)."""

    traits: ClassVar[Traits] = _container("Map", TypeIndex.MAP, "dict")


@dataclass(frozen=True, slots=True)
class Dict(Pairs):
    """An ffi.Dict; every key is a `key` and every value a `value` (None: anything)."""

    traits: ClassVar[Traits] = _container("Dict", TypeIndex.DICT, "Dict")


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
    | AnyOrTuple
)


def type_indices(param: Param) -> frozenset[int]:
    """The type indices of the values that a parameter takes (facts of tvm-ffi's ABI).

    A union chooses its member by these indices.  Therefore only `Optional`, `NoneValue` and
    `AnyValue` accept None here, and a pointer does not accept an int.
    """
    return param.indices


def check_distinct(union: Union) -> None:
    """ValueError unless each member accepts a type index that no earlier member accepts."""
    taken: frozenset[int] = frozenset()
    for member in union.members:
        indices = type_indices(member)
        if isinstance(member, (Optional, Union, AnyValue)) or indices <= taken:
            raise ValueError(
                f"{union.name}: the member {member!r} of a Union cannot be told apart from those "
                f"before it by its type"
            )
        taken |= indices


KINDS: Final = get_args(Param)


def _listed(name: str, items: object) -> tuple[Any, ...]:
    """Several specs as a tuple.  Raises TypeError for a text and for a value without items."""
    if not isinstance(items, Iterable) or isinstance(items, (str, bytes)):
        raise TypeError(f"{name}: what stands inside it must be in a tuple, but got {items!r}")
    return tuple(items)


def _check_inside(name: str, items: tuple[Param, ...], *, fields: bool = False) -> None:
    """Check the specs inside a parameter: no EnvStream, and a default only on `fields`."""
    for item in items:
        if not isinstance(item, KINDS):
            raise TypeError(
                f"{name}: what stands inside it must be a spec, such as "
                f"Scalar('x', 'int32'), but got {item!r}"
            )
    if any(isinstance(item, EnvStream) for item in items):
        raise ValueError(f"{name}: an env stream is no argument, so it cannot stand inside another")
    for item in items:
        if item.default is not REQUIRED and not fields:
            raise ValueError(
                f"{name}: {type(item).__name__} inside it has the default {item.default!r}: only a "
                f"parameter and a field of a named tuple or dataclass have one"
            )


def check_element(name: str, item: Param | None) -> None:
    """ValueError if the element of a container is a kind that binds symbols."""
    _check_inside(name, () if item is None else (item,))
    match item:
        case Elements(item=inner) | Optional(item=inner):
            check_element(name, inner)
        case Pairs(key=key, value=value):
            check_element(name, key)
            check_element(name, value)
        case Tensor(shape=shape, strides=strides):
            if any(not isinstance(dim, int) for dim in (*shape, *strides)):
                raise ValueError(f"{name}: a tensor in a container has a static shape")
        case Stream() | Shape() | Pointer() | EnvStream() | Tuple() | Union():
            raise ValueError(f"{name}: {type(item).__name__} cannot be an element of a container")
        case None | Plain() | Scalar() | Constant() | Object():
            return
        case _:
            assert_never(item)
