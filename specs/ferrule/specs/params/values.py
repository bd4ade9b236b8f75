"""Text, dtypes, devices, None, and objects of tvm-ffi."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from ferrule.specs.deferred import dataclass
from ferrule.specs.params.base import REQUIRED, Plain, WithTraits, check_name
from ferrule.specs.params.traits import CArgument, Payload, Traits
from ferrule.specs.typeindex import DYNAMIC, STRINGS, TypeIndex


@dataclass(frozen=True, slots=True)
class String(Plain):
    """Text: raw, small or heap string at the call."""

    traits: ClassVar[Traits] = Traits(
        "str",
        Payload.BYTES,
        STRINGS,
        stored=(TypeIndex.SMALL_STR, TypeIndex.STR),
        schema="ffi.String",
        leaves=("ptr", "i64"),
        description="a string",
        python="str",
        c=CArgument("const char*", "kTVMFFIRawStr", "v_c_str"),
        accepted=("str",),
        forms=("TEXT",),
    )


@dataclass(frozen=True, slots=True)
class Bytes(Plain):
    """Bytes: a byte array, small or heap bytes at the call."""

    traits: ClassVar[Traits] = Traits(
        "bytes",
        Payload.BYTES,
        frozenset({TypeIndex.BYTE_ARRAY_PTR, TypeIndex.SMALL_BYTES, TypeIndex.BYTES}),
        stored=(TypeIndex.SMALL_BYTES, TypeIndex.BYTES),
        schema="ffi.Bytes",
        leaves=("ptr", "i64"),
        description="bytes",
        python="bytes",
        accepted=("bytes", "bytearray"),
        forms=("BYTES",),
    )


@dataclass(frozen=True, slots=True)
class DataType(Plain):
    """A dtype as a value: a DLDataType, or its name."""

    traits: ClassVar[Traits] = Traits(
        "dtype",
        Payload.BITS,
        STRINGS | {TypeIndex.DATA_TYPE},
        stored=(TypeIndex.DATA_TYPE,),
        schema="DataType",
        leaves=("i32",),
        description="a dtype",
        words=("dtype", "str"),
        c=CArgument("DLDataType", "kTVMFFIDataType", "v_dtype"),
        # No torch.dtype: tvm-ffi does not know the complex ones.
        accepted=("tvm_ffi.dtype", "str"),
        forms=("TEXT",),
    )


@dataclass(frozen=True, slots=True)
class Device(Plain):
    """A device as a value: a DLDevice, or its name."""

    traits: ClassVar[Traits] = Traits(
        "Device",
        Payload.BITS,
        STRINGS | {TypeIndex.DEVICE},
        stored=(TypeIndex.DEVICE,),
        schema="Device",
        leaves=("i64",),
        description="a device",
        words=("Device", "str"),
        c=CArgument("DLDevice", "kTVMFFIDevice", "v_device"),
        accepted=("tvm_ffi.Device", "str"),
        forms=("TEXT",),
    )


@dataclass(frozen=True, slots=True)
class NoneValue(Plain):
    """None, and nothing else."""

    traits: ClassVar[Traits] = Traits(
        "None",
        Payload.NOTHING,
        frozenset({TypeIndex.NONE}),
        stored=(TypeIndex.NONE,),
        schema="None",
        leaves=(),
        description="None",
        python="None",
        accepted=("None",),
        forms=("NONE",),
    )


@dataclass(frozen=True, slots=True)
class Function(Plain):
    """A callback: a function that tvm-ffi can call."""

    traits: ClassVar[Traits] = Traits(
        "Function",
        Payload.OBJECT,
        frozenset({TypeIndex.FUNCTION}),
        stored=(TypeIndex.FUNCTION,),
        schema="ffi.Function",
        leaves=("ptr",),
        description="a function",
        python="Callable[..., Any]",
        accepted=("callable",),
        forms=("FUNCTION",),
    )


@dataclass(frozen=True, slots=True)
class Module(Plain):
    """A tvm-ffi module."""

    traits: ClassVar[Traits] = Traits(
        "Module",
        Payload.OBJECT,
        frozenset({TypeIndex.MODULE}),
        stored=(TypeIndex.MODULE,),
        schema="ffi.Module",
        leaves=("ptr",),
        description="a module",
        accepted=("tvm_ffi.Module",),
    )


@dataclass(frozen=True, slots=True)
class AnyValue(Plain):
    """Any value."""

    traits: ClassVar[Traits] = Traits(
        "Any",
        Payload.ANY,
        frozenset({*range(80), DYNAMIC}),
        stored=(),
        schema="Any",
        leaves=("ptr",),
        description="a value of any kind",
        accepted=("any",),
        forms=("INT", "FLOAT", "BOOL", "NONE", "TENSOR", "TEXT", "BYTES", "ADDRESS", "FUNCTION"),
    )


@dataclass(frozen=True, slots=True)
class AnyOrTuple(AnyValue):
    """Any value as a result; each Array in it is a tuple that the function built."""

    traits: ClassVar[Traits] = replace(AnyValue.traits, word="AnyOrTuple")


@dataclass(frozen=True, slots=True)
class Object(WithTraits):
    """An object of the registered type with this type key, or of a type derived from it."""

    name: str
    type_key: str
    default: Any = REQUIRED
    traits: ClassVar[Traits] = Traits(
        "Object",
        Payload.OBJECT,
        frozenset({DYNAMIC}),
        stored=(),
        schema="ffi.Object",
        leaves=("ptr",),
        description="an object",
        accepted=("tvm_ffi.Object", "tvm_ffi.Module"),
    )

    def __post_init__(self) -> None:
        check_name(self.name)
        if not isinstance(self.type_key, str) or not self.type_key:
            raise ValueError(f"{self.name}: the type key must be a text, but got {self.type_key!r}")
