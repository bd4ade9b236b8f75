"""The functions that describe an exported function: LLVM text for its metadata and docstring.

`__tvm_ffi__metadata_<name>` and `__tvm_ffi__doc_<name>` take no arguments and return a string. On
request there is a constructor too, which registers all three with tvm-ffi's system library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ferrule.runtime.abi import SYMBOL_PREFIX, system_lib_symbol
from ferrule.runtime.binaries.digest import EMPTY_NOTE
from ferrule.runtime.binaries.metadata import NOTE_OWNER, NOTE_SECTION, NOTE_TYPE
from ferrule.runtime.llvm.writer import symbol_name

NOTE_ALIGN: Final = 4
NOTE_SIZE: Final = 4
NOTE_TEXT: Final = 20
"""The offsets, in a note, of the size of its text and of the text."""

_MACHO_SECTION: Final = "__TEXT,__ferrule"
_STRING: Final = """
define i32 {function}(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {{
  %text = alloca {{ ptr, i64 }}, align 8
  store ptr getelementptr (i8, ptr {constant}, i64 {offset}), ptr %text
  %size = getelementptr i8, ptr %text, i64 8
  store i64 {length}, ptr %size
  %status = call i32 @TVMFFIStringFromByteArray(ptr %text, ptr %result)
  ret i32 %status
}}
"""


def describe(
    name: str,
    metadata: str,
    doc: str | None,
    triple: str,
    system_lib: str | None = None,
    *,
    is_object: bool = False,
) -> str:
    """The LLVM module; in an ELF object, the metadata's constant is also a note.

    `system_lib` is the prefix under which the symbols are registered. An object has room for a
    digest of its bytes; a text has none, because the bytes of its object are not known.
    """
    size = len(metadata.encode())
    parts = [
        "declare i32 @TVMFFIStringFromByteArray(ptr, ptr)\n",
        constant_of(metadata, triple, is_object=is_object),
        _function(f"__tvm_ffi__metadata_{name}", "@.metadata", NOTE_TEXT, size),
    ]
    symbols = [SYMBOL_PREFIX + name, f"__tvm_ffi__metadata_{name}"]
    if doc:
        said = doc.encode()
        parts += [
            _constant("@.doc", said + b"\0", "align 1"),
            _function(f"__tvm_ffi__doc_{name}", "@.doc", 0, len(said)),
        ]
        symbols.append(f"__tvm_ffi__doc_{name}")
    if system_lib is not None:
        parts += [
            f"declare i32 {symbol_name(symbols[0])}(ptr, ptr, i32, ptr)\n",
            _constructor(symbols, system_lib),
        ]
    return "".join(parts)


def constant_of(metadata: str, triple: str, *, is_object: bool) -> str:
    """The constant `@.metadata`, as LLVM text; in an object, room for the digest follows it."""
    is_macho = "-apple-" in triple
    section = _MACHO_SECTION if is_macho else NOTE_SECTION
    data = note(metadata.encode()) + (EMPTY_NOTE if is_object and not is_macho else b"")
    return _constant("@.metadata", data, f'section "{section}", align {NOTE_ALIGN}')


def note(text: bytes) -> bytes:
    """The sizes of owner and text, the type, the owner, and the text."""
    owner = NOTE_OWNER.encode() + b"\0"
    numbers = (len(owner), len(text), NOTE_TYPE)
    words = b"".join(number.to_bytes(4, "little") for number in numbers)
    return words + owner + bytes(-len(owner) % NOTE_ALIGN) + text + bytes(-len(text) % NOTE_ALIGN)


def _constant(name: str, data: bytes, attributes: str) -> str:
    text = "".join(f"\\{byte:02X}" for byte in data)
    return f'{name} = private constant [{len(data)} x i8] c"{text}", {attributes}\n'


def _function(symbol: str, constant: str, offset: int, length: int) -> str:
    return _STRING.format(
        function=symbol_name(symbol), constant=constant, offset=offset, length=length
    )


def _constructor(symbols: Sequence[str], prefix: str) -> str:
    """The constructor, which runs before `main` and registers these symbols with tvm-ffi."""
    lines = ["declare i32 @TVMFFIEnvModRegisterSystemLibSymbol(ptr, ptr)\n"]
    calls = []
    for i, symbol in enumerate(symbols):
        key = system_lib_symbol(prefix, symbol).encode() + b"\0"
        lines.append(_constant(f"@.key.{i}", key, "align 1"))
        called = f"@TVMFFIEnvModRegisterSystemLibSymbol(ptr @.key.{i}, ptr {symbol_name(symbol)})"
        calls.append(f"  call i32 {called}\n")
    return "".join(
        [
            *lines,
            "define internal void @.register() noinline optnone {\n",
            *calls,
            "  ret void\n}\n",
            "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] "
            "[{ i32, ptr, ptr } { i32 65535, ptr @.register, ptr null }]\n",
        ]
    )
