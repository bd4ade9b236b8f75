"""Reads types of C and C++ from the text with which compilers spell them.

read_type("const float * __restrict__")      an address of float that is read only, restrict
read_type("long unsigned int")               the number "unsigned long", a uint64
parameter_list("void (*)(int, float *)")     ("int", "float *")
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from ferrule.specs import as_dtype
from ferrule.specs.deferred import dataclass

_QUALIFIERS: Final = frozenset({"const", "volatile", "restrict", "__restrict", "__restrict__"})
_RESTRICT: Final = frozenset({"restrict", "__restrict", "__restrict__"})
_TAGS: Final = frozenset({"struct", "union", "enum", "class"})
_INTEGER: Final = frozenset({"signed", "unsigned", "char", "short", "int", "long"})
_WORD: Final = re.compile(r"[\w:]+(?:\s*<.*>)?(?:::\w+)*|\S")
_BEHIND: Final = re.compile(r"^(.*?)\(\s*([*&]+)\s*([\w\s]*)\)\s*(\[.*\]|\(.*\))\s*$")
_RESULT_ROWS: Final = re.compile(r"(\s*\[[^\]]*\])+$")
_LENGTH: Final = re.compile(r"\[([^\]]*)\]")
_INLINE: Final = re.compile(r"::__\d+(?=::)")
"""The inline namespace with the version of cuda::std and std."""

VECTORS: Final = {
    f"{name}{lanes}": min(16, size * {2: 2, 3: 1, 4: 4}[lanes])
    for name, size in {
        "char": 1,
        "uchar": 1,
        "short": 2,
        "ushort": 2,
        "int": 4,
        "uint": 4,
        "float": 4,
        "long": 8,
        "ulong": 8,
        "longlong": 8,
        "ulonglong": 8,
        "double": 8,
    }.items()
    for lanes in (2, 3, 4)
} | {"__half2": 4, "__nv_bfloat162": 4}
"""The alignments of CUDA's vectors (CUDA C++ Programming Guide, "Built-in Vector Types")."""

_IN_HALVES: Final = ("std::complex<", "_Complex ")
"""Complex numbers, which are aligned like their parts."""

DTYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "bool": "bool",
        "_Bool": "bool",
        "char": "int8",
        "signed char": "int8",
        "unsigned char": "uint8",
        "short": "int16",
        "unsigned short": "uint16",
        "int": "int32",
        "unsigned int": "uint32",
        "long": "int64",
        "unsigned long": "uint64",
        "long long": "int64",
        "unsigned long long": "uint64",
        "float": "float32",
        "double": "float64",
        "_Float16": "float16",
        "__fp16": "float16",
        "__half": "float16",
        "__bf16": "bfloat16",
        "__nv_bfloat16": "bfloat16",
        "__nv_bool": "bool",
        "__nv_fp8_e4m3": "float8_e4m3fn",
        "__nv_fp8_e5m2": "float8_e5m2",
        "__nv_fp8_e8m0": "float8_e8m0fnu",
        "cutlass::half_t": "float16",
        "cutlass::bfloat16_t": "bfloat16",
        "cutlass::float_e4m3_t": "float8_e4m3fn",
        "cutlass::float_e5m2_t": "float8_e5m2",
        "cutlass::float_ue8m0_t": "float8_e8m0fnu",
        "tl::float_e4m3_t": "float8_e4m3fn",
        "tl::float_e5m2_t": "float8_e5m2",
        "_Complex float": "complex64",
        "_Complex double": "complex128",
        **{
            f"{name}<{part}>": whole
            for name in ("std::complex", "cuda::std::complex", "thrust::complex")
            for part, whole in (("float", "complex64"), ("double", "complex128"))
        },
    }
)
"""The dtypes of C's, CUDA's, CUTLASS's and TileLang's numbers."""

ARITHMETIC: Final = frozenset(
    name for name in DTYPES if not name.startswith(("__", "_C")) and not {"<", ":"} & {*name}
)
"""The types that C itself has for real numbers."""
_ALSO_CALLED: Final = MappingProxyType(
    {
        "int8_t": "signed char",
        "int16_t": "short",
        "int32_t": "int",
        "int64_t": "long",
        "uint8_t": "unsigned char",
        "uint16_t": "unsigned short",
        "uint32_t": "unsigned int",
        "uint64_t": "unsigned long",
        "size_t": "unsigned long",
        "ssize_t": "long",
        "ptrdiff_t": "long",
        "intptr_t": "long",
        "uintptr_t": "unsigned long",
        "half": "__half",
        "nv_half": "__half",
        "nv_bfloat16": "__nv_bfloat16",
        "half2": "__half2",
        "nv_bfloat162": "__nv_bfloat162",
        "uchar": "unsigned char",
        "ushort": "unsigned short",
        "uint": "unsigned int",
        "ulong": "unsigned long",
        "cuComplex": "float2",
        "cuFloatComplex": "float2",
        "cuDoubleComplex": "double2",
    }
)
"""Aliases in headers."""

_COMPLEX: Final = MappingProxyType(
    {"float _Complex": "_Complex float", "double _Complex": "_Complex double"}
)
PLURAL: Final[Mapping[str, str]] = MappingProxyType(
    {"float2": "complex64", "double2": "complex128"}
)
"""Structs that represent a complex number: the types of cuComplex.h are aliases of these."""


@dataclass(frozen=True, slots=True)
class Spelled:
    """A type: `text` is the original spelling, `name` the unqualified name; for a pointer `name` is
    its pointee, and `stars` the levels of indirection.  `lengths` are the lengths of an array
    behind the pointer, None for an unspecified length.  `is_const` belongs to the pointee,
    `is_restrict` to the pointer.
    """

    text: str
    name: str
    stars: int = 0
    is_const: bool = False
    is_restrict: bool = False
    is_function: bool = False
    lengths: tuple[int | None, ...] = ()

    @property
    def dtype(self) -> str | None:
        """The dtype of the number, or of the number behind the pointer."""
        return DTYPES.get(self.name)

    @property
    def is_number(self) -> bool:
        """Whether it is a number."""
        return not self.stars and self.dtype is not None


def read_type(text: str) -> Spelled:
    """The type that a text spells; a type that is neither a number nor a pointer is just a name."""
    behind = _BEHIND.match(text)
    if behind is None:
        return _pointers(text, text)
    inner, signs, words, rest = behind.groups()
    if rest.startswith("("):
        return Spelled(text, "a function", len(signs), is_function=True)
    lengths = tuple(int(each) if each.isdigit() else None for each in _LENGTH.findall(rest))
    return replace(_pointers(f"{inner}{signs[0]} {words}", text), lengths=lengths)


def as_called(spelled: Spelled) -> Spelled:
    """The type behind an alias of the headers of C and CUDA: `size_t`, `half`."""
    return replace(spelled, name=_ALSO_CALLED.get(spelled.name, spelled.name))


def _pointers(spelled: str, text: str) -> Spelled:
    first, *behind = re.split(r"[*&]", spelled.replace("&&", "&"))
    words = _words(first)
    last = set(_words(behind[-1])) if behind else set()
    levels = [set(words), *(set(_words(each)) for each in behind[:-1])]
    is_const = bool(behind) and "const" in levels[-1]
    return Spelled(text, _name(words), len(behind), is_const, bool(last & _RESTRICT))


def _words(text: str) -> list[str]:
    return [found[0] for found in _WORD.finditer(text.strip())]


def _name(words: list[str]) -> str:
    """The name of a type, independent of the order of its words."""
    kept = [each for each in words if each not in _QUALIFIERS and each not in _TAGS]
    if kept and set(kept) <= _INTEGER:
        return _integer(kept)
    joined = _INLINE.sub("", " ".join(kept))
    return _COMPLEX.get(joined, joined)


def _integer(words: list[str]) -> str:
    sign = "unsigned " if "unsigned" in words else ""
    if "char" in words:
        return f"{sign}char" if sign or "signed" not in words else "signed char"
    if "short" in words:
        return f"{sign}short"
    return sign + (" ".join(["long"] * words.count("long")) or "int")


def parameter_list(text: str) -> tuple[str, ...] | None:
    """The types of the parameters in a function type; "..." at the end if it is variadic.  None for
    other types, and for a function type without a prototype."""
    text = _with_plain_result(text)
    end = text.rfind(")")
    start = _opening(text, end)
    if start is None or not text[start + 1 : end].strip():
        return None
    listed = tuple(split_list(text[start + 1 : end]))
    return () if listed == ("void",) else listed


def result_of(text: str) -> str | None:
    """The result type in a function type; None if it is not recognised.  The address of a function
    or an array is "void *"."""
    text = _with_plain_result(text)
    start = _opening(text, text.rfind(")"))
    before = "" if start is None else text[:start].strip()
    result = re.sub(r"\(\s*[*&]\s*\)$", "", before).strip()
    return None if not result or "(" in result else result


def _with_plain_result(text: str) -> str:
    """A function type that returns the address of a function or an array, as one that returns a
    plain address: there C writes the function and its parameters inside of the result.

    int (* (*)(double))(int)      ->      void * (*)(double)
    """
    before = _RESULT_ROWS.sub("", text.strip())
    if before == text.strip():
        start = _opening(before, before.rfind(")"))
        before = "" if start is None else before[:start].rstrip()
    start = _opening(before, len(before) - 1) if before.endswith(")") else None
    inner = "" if start is None else before[start + 1 : -1].strip()
    if not inner.startswith(("*", "&")) or ")" not in inner:
        return text
    return _with_plain_result(f"void {inner}")


def _opening(text: str, end: int) -> int | None:
    """The index of the parenthesis that matches the one at `end`."""
    depth = 0
    for at in range(end, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if not depth:
            return at
    return None


def split_list(text: str) -> Iterator[str]:
    """The items of a list, split at commas outside of all brackets."""
    depth, start = 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "(<[{") - (letter in ")>]}")
        if letter == "," and not depth:
            yield text[start:at].strip()
            start = at + 1
    yield text[start:].strip()


def natural_alignment(pointer: Spelled) -> int:
    """The alignment that the pointee type guarantees: a number, an address, or a vector of CUDA; 1
    for others."""
    if pointer.is_function or not pointer.stars:
        return 1
    if pointer.stars > 1:
        return 8
    if pointer.dtype is not None:
        halves = 2 if pointer.name.startswith(_IN_HALVES) else 1
        return as_dtype(pointer.dtype).itemsize // halves
    return VECTORS.get(pointer.name, 1)
