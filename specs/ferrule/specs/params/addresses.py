"""Pointers and streams."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from ferrule.specs.deferred import dataclass
from ferrule.specs.devices import as_device_type
from ferrule.specs.dtypes import DType, as_dtype
from ferrule.specs.expr import NoSize
from ferrule.specs.params.base import REQUIRED, Plain, Required, WithTraits, check_name
from ferrule.specs.params.tensors import check_alignment
from ferrule.specs.params.traits import CArgument, Payload, Traits
from ferrule.specs.typeindex import TypeIndex


class AddressSpace(Enum):
    """Where a pointer points, under CuTe's names."""

    generic = "generic"
    gmem = "gmem"
    smem = "smem"
    rmem = "rmem"


@dataclass(frozen=True, slots=True)
class Pointer(WithTraits, NoSize):
    """An address: ctypes.c_void_p, an int, an object with `__tvm_ffi_opaque_ptr__`; None is null.

    `dtype` is the type of the elements there (None: unknown); `align` is in bytes.
    """

    name: str
    dtype: DType | None = None
    address_space: AddressSpace = AddressSpace.generic
    align: int = 1
    nullable: bool = True
    default: None | Required = REQUIRED
    traits: ClassVar[Traits] = Traits(
        "Pointer",
        Payload.ADDRESS,
        frozenset({TypeIndex.OPAQUE_PTR}),
        stored=(TypeIndex.OPAQUE_PTR,),
        schema="void*",
        leaves=("ptr",),
        description="a pointer",
        words=("a pointer", "int", "None"),
        c=CArgument("void*", "kTVMFFIOpaquePtr", "v_ptr"),
        accepted=("ctypes.c_void_p", "int", "None"),
        forms=("ADDRESS", "INT", "NONE", "HANDLE"),
    )

    @property
    def instead_of_size(self) -> str:
        """See `NoSize`."""
        return f"the parameter {self.name}, an address"

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.dtype is not None:
            object.__setattr__(self, "dtype", as_dtype(self.dtype))
        check_alignment(self.dtype or as_dtype("uint8"), self.align)


@dataclass(frozen=True, slots=True)
class Stream(Plain):
    """A stream's handle: an object of the CUDA stream protocol, an int, or None for the default."""

    traits: ClassVar[Traits] = Traits(
        "Stream",
        Payload.ADDRESS,
        frozenset({TypeIndex.OPAQUE_PTR}),
        stored=(TypeIndex.OPAQUE_PTR,),
        schema="void*",
        leaves=("ptr",),
        description="a stream",
        words=("a stream", "int", "None"),
        c=CArgument("void*", "kTVMFFIOpaquePtr", "v_ptr"),
        accepted=("int", "None", "ctypes.c_void_p"),
        forms=("ADDRESS", "INT", "NONE", "HANDLE"),
    )


@dataclass(frozen=True, slots=True)
class EnvStream(WithTraits):
    """The caller's current stream, which the wrapper asks tvm-ffi for; not an argument of the call.

    `device` and `device_id` name the device of the stream if no tensor determines it.
    """

    name: str
    device: str | None = None
    device_id: int | None = None
    traits: ClassVar[Traits] = Traits(
        "EnvStream",
        Payload.ADDRESS,
        frozenset(),
        stored=(),
        schema="void*",
        leaves=("ptr",),
        description="a stream",
    )

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.device is not None:
            as_device_type(self.device)

    @property
    def default(self) -> None:
        """None: a call never gives this parameter."""
        return None
