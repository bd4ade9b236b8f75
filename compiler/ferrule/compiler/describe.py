"""The functions that describe an exported one: LLVM text of its metadata and its docstring.

`__tvm_ffi__metadata_<name>` and `__tvm_ffi__doc_<name>` take no arguments and return a string.
"""

from __future__ import annotations

from typing import Final

from ferrule.runtime.llvm.writer import symbol_name
from ferrule.runtime.metadata import NOTE_OWNER, NOTE_SECTION, NOTE_TYPE

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


def describe(name: str, metadata: str, doc: str | None, triple: str) -> str:
    """The LLVM module; the metadata's constant is a note of its object where that is ELF."""
    text = metadata.encode()
    header = _note_header(len(text))
    padding = bytes(-len(text) % 4)
    section = _MACHO_SECTION if "-apple-" in triple else NOTE_SECTION
    parts = [
        "declare i32 @TVMFFIStringFromByteArray(ptr, ptr)\n",
        _constant("@.metadata", header + text + padding, f'section "{section}", align 4'),
        _function(f"__tvm_ffi__metadata_{name}", "@.metadata", len(header), len(text)),
    ]
    if doc:
        said = doc.encode()
        parts += [
            _constant("@.doc", said + b"\0", "align 1"),
            _function(f"__tvm_ffi__doc_{name}", "@.doc", 0, len(said)),
        ]
    return "".join(parts)


def _note_header(size: int) -> bytes:
    """The sizes of owner and text, the type, and the owner."""
    owner = NOTE_OWNER.encode() + b"\0"
    words = b"".join(number.to_bytes(4, "little") for number in (len(owner), size, NOTE_TYPE))
    return words + owner + bytes(-len(owner) % 4)


def _constant(name: str, data: bytes, attributes: str) -> str:
    text = "".join(f"\\{byte:02X}" for byte in data)
    return f'{name} = internal constant [{len(data)} x i8] c"{text}", {attributes}\n'


def _function(symbol: str, constant: str, offset: int, length: int) -> str:
    return _STRING.format(
        function=symbol_name(symbol), constant=constant, offset=offset, length=length
    )
