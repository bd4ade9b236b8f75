"""The C functions that generated code may reference, and nothing else.

The undefined symbols of an object are in this table, or the user named them. The table has only
functions of libtvm_ffi that exist since version 0.1.0; newer ones are looked up with `dlsym` at run
time. Python's C API is not in the table, because an exported object must not need an interpreter.
To read the table needs no LLVM: `ferrule.runtime.llvm.emitter` makes LLVM's types of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from ferrule.specs.deferred import dataclass

I32: Final = "i32"
I64: Final = "i64"
PTR: Final = "ptr"
VOID: Final = "void"


class Library(Enum):
    """Where a function lives."""

    TVM_FFI = "libtvm_ffi"
    LIBC = "libc"


@dataclass(frozen=True, slots=True)
class CFunction:
    """One C function: its library and its prototype, whose types have LLVM's names."""

    name: str
    library: Library
    result: str
    arguments: tuple[str, ...]
    variadic: bool = False


def _tvm_ffi(name: str, result: str, *arguments: str) -> CFunction:
    return CFunction(name, Library.TVM_FFI, result, arguments)


def _libc(name: str, result: str, *arguments: str, variadic: bool = False) -> CFunction:
    return CFunction(name, Library.LIBC, result, arguments, variadic)


def _table(*functions: CFunction) -> Mapping[str, CFunction]:
    table = {function.name: function for function in functions}
    if len(table) != len(functions):
        raise ValueError("a C function is in the table twice")
    return MappingProxyType(table)


C_FUNCTIONS: Mapping[str, CFunction] = _table(
    # Errors.
    _tvm_ffi("TVMFFIErrorCreate", I32, PTR, PTR, PTR, PTR),
    _tvm_ffi("TVMFFIErrorSetRaised", VOID, PTR),
    _tvm_ffi("TVMFFIErrorSetRaisedFromCStr", VOID, PTR, PTR),
    _tvm_ffi("TVMFFIErrorSetRaisedFromCStrParts", VOID, PTR, PTR, I32),
    _tvm_ffi("TVMFFIErrorMoveFromRaised", VOID, PTR),
    # Objects and values.
    _tvm_ffi("TVMFFIObjectIncRef", I32, PTR),
    _tvm_ffi("TVMFFIObjectDecRef", I32, PTR),
    _tvm_ffi("TVMFFIAnyViewToOwnedAny", I32, PTR, PTR),
    _tvm_ffi("TVMFFIStringFromByteArray", I32, PTR, PTR),
    _tvm_ffi("TVMFFIBytesFromByteArray", I32, PTR, PTR),
    _tvm_ffi("TVMFFIDataTypeFromString", I32, PTR, PTR),
    _tvm_ffi("TVMFFIDataTypeToString", I32, PTR, PTR),
    _tvm_ffi("TVMFFIGetTypeInfo", PTR, I32),
    _tvm_ffi("TVMFFIGetTypeAttrColumn", PTR, PTR),
    _tvm_ffi("TVMFFITypeKeyToIndex", I32, PTR, PTR),
    # Functions and modules.
    _tvm_ffi("TVMFFIFunctionCall", I32, PTR, PTR, I32, PTR),
    _tvm_ffi("TVMFFIFunctionCreate", I32, PTR, PTR, PTR, PTR),
    _tvm_ffi("TVMFFIFunctionGetGlobal", I32, PTR, PTR),
    _tvm_ffi("TVMFFIEnvModLookupFromImports", I32, PTR, PTR, PTR),
    _tvm_ffi("TVMFFIEnvModRegisterSystemLibSymbol", I32, PTR, PTR),
    # The caller's environment.
    _tvm_ffi("TVMFFIEnvGetStream", PTR, I32, I32),
    _tvm_ffi("TVMFFIEnvSetStream", I32, I32, I32, PTR, PTR),
    _tvm_ffi("TVMFFIEnvTensorAlloc", I32, PTR, PTR),
    _tvm_ffi("TVMFFIEnvGetDLPackManagedTensorAllocator", PTR),
    _tvm_ffi("TVMFFIEnvCheckSignals", I32),
    _tvm_ffi("TVMFFITensorFromDLPack", I32, PTR, I32, I32, PTR),
    _tvm_ffi("TVMFFITensorFromDLPackVersioned", I32, PTR, I32, I32, PTR),
    _tvm_ffi("TVMFFITensorToDLPackVersioned", I32, PTR, PTR),
    _tvm_ffi("TVMFFIGetVersion", VOID, PTR),
    # The C library.
    _libc("malloc", PTR, I64),
    _libc("free", VOID, PTR),
    _libc("memcpy", PTR, PTR, PTR, I64),
    _libc("memmove", PTR, PTR, PTR, I64),
    _libc("memset", PTR, PTR, I32, I64),
    _libc("memcmp", I32, PTR, PTR, I64),
    _libc("strlen", I64, PTR),
    _libc("strcmp", I32, PTR, PTR),
    _libc("snprintf", I32, PTR, I64, PTR, variadic=True),
    _libc("dprintf", I32, I32, PTR, variadic=True),
    _libc("getenv", PTR, PTR),
    _libc("dlopen", PTR, PTR, I32),
    _libc("dlsym", PTR, PTR, PTR),
    _libc("dlerror", PTR),
    _libc("usleep", I32, I32),
    _libc("getpid", I32),
    _libc("clock_gettime", I32, I32, PTR),
)


def c_function(name: str) -> CFunction:
    """The table's entry for a name; a missing name is a bug in the code generator."""
    try:
        return C_FUNCTIONS[name]
    except KeyError:
        raise KeyError(f"{name} is not in the table of C functions") from None
