"""The structs of XLA's foreign function interface, by field name.

The interface is C, and XLA keeps it stable: `xla/ffi/api/c_api.h`, which jaxlib has in
`jax.ffi.include_dir()`. A test pins each offset against that header.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from llvmlite import ir

from ferrule.runtime.llvm.layouts import I32, I64, PTR, Field, Layout, size_of

MAJOR: Final = 0
MINOR: Final = 3
"""The version of the interface that handlers are written for."""
OLDEST_MINOR: Final = 1
"""The oldest version in which the structs here are the same."""

# Of xla/ffi/api/c_api.h: an extension, a stage of execution, and kinds of attributes.
METADATA_EXTENSION: Final = 1
EXECUTE: Final = 3
SCALAR: Final = 3
STRING: Final = 4

ABSENT: Final = "None"
"""The text that an attribute has where the argument is not there."""


class Code(IntEnum):
    """The kinds of errors that a handler makes (`XLA_FFI_Error_Code`)."""

    INVALID_ARGUMENT = 3
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13


def _struct(name: str, *fields: Field) -> Layout:
    head = (Field("struct_size", I64), Field("extension_start", PTR))
    return Layout(name, [*head, *fields])


VERSION: Final = _struct(
    "XLA_FFI_Api_Version", Field("major_version", I32), Field("minor_version", I32)
)

EXTENSION: Final = Layout(
    "XLA_FFI_Extension_Base", [Field("struct_size", I64), Field("type", I32), Field("next", PTR)]
)

METADATA: Final = Layout(
    "XLA_FFI_Metadata",
    [Field("struct_size", I64), Field("api_version", VERSION), Field("traits", I32)],
)

METADATA_OF: Final = Layout(
    "XLA_FFI_Metadata_Extension", [Field("extension_base", EXTENSION), Field("metadata", PTR)]
)

BUFFER: Final = _struct(
    "XLA_FFI_Buffer",
    Field("dtype", I32),
    Field("data", PTR),
    Field("rank", I64),
    Field("dims", PTR),
)

SPAN: Final = Layout("XLA_FFI_ByteSpan", [Field("ptr", PTR), Field("len", I64)])

SCALAR_OF: Final = Layout("XLA_FFI_Scalar", [Field("dtype", I32), Field("value", PTR)])

ARGS: Final = _struct("XLA_FFI_Args", Field("size", I64), Field("types", PTR), Field("args", PTR))

RETS: Final = _struct("XLA_FFI_Rets", Field("size", I64), Field("types", PTR), Field("rets", PTR))

ATTRS: Final = _struct(
    "XLA_FFI_Attrs",
    Field("size", I64),
    Field("types", PTR),
    Field("names", PTR),
    Field("attrs", PTR),
)

FRAME: Final = _struct(
    "XLA_FFI_CallFrame",
    Field("api", PTR),
    Field("ctx", PTR),
    Field("stage", I32),
    Field("args", ARGS),
    Field("rets", RETS),
    Field("attrs", ATTRS),
)

API: Final = _struct(
    "XLA_FFI_Api",
    Field("api_version", VERSION),
    Field("internal_api", PTR),
    Field("XLA_FFI_Error_Create", PTR),
    Field("XLA_FFI_Error_GetMessage", PTR),
    Field("XLA_FFI_Error_Destroy", PTR),
    Field("XLA_FFI_Handler_Register", PTR),
    Field("XLA_FFI_Stream_Get", PTR),
    Field("XLA_FFI_Type_Register", PTR),
    Field("XLA_FFI_ExecutionContext_Get", PTR),
    Field("XLA_FFI_State_Set", PTR),
    Field("XLA_FFI_State_Get", PTR),
    Field("XLA_FFI_DeviceMemory_Allocate", PTR),
    Field("XLA_FFI_DeviceMemory_Free", PTR),
    Field("XLA_FFI_ThreadPool_Schedule", PTR),
    Field("XLA_FFI_ThreadPool_NumThreads", PTR),
    Field("XLA_FFI_Future_Create", PTR),
    Field("XLA_FFI_Future_SetAvailable", PTR),
    Field("XLA_FFI_Future_SetError", PTR),
    Field("XLA_FFI_RunId_Get", PTR),
    Field("XLA_FFI_DeviceOrdinal_Get", PTR),
)

ERROR_CREATE: Final = _struct(
    "XLA_FFI_Error_Create_Args", Field("message", PTR), Field("errc", I32)
)

STREAM_GET: Final = _struct("XLA_FFI_Stream_Get_Args", Field("ctx", PTR), Field("stream", PTR))

ORDINAL_GET: Final = _struct(
    "XLA_FFI_DeviceOrdinal_Get_Args", Field("ctx", PTR), Field("device_ordinal", I32)
)

OF_API: Final = ir.FunctionType(PTR, [PTR])
"""The type of the interface's functions: an error, or null, of a struct of arguments."""


def struct_size(layout: Layout) -> int:
    """What the field `struct_size` says: the bytes up to the end of the last field."""
    last = layout.names[-1]
    return layout.offset(last) + size_of(layout.type_of(last))
