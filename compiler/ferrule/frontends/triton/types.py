"""Triton's names of types, and ferrule's dtypes for them.

The names are those of a Triton signature: "fp16" is a number, "*fp16" a pointer to such numbers.
The text of an example adds a tensor's sizes and strides, and the assumptions:

    "*fp16[m, k]"        a compact tensor of these sizes
    "*fp16[m, k: s, 1]"  one with these strides, in elements
    "*fp16[m, k<=4096]"  whose last size is at most 4096; "16<=k<=4096" and "k>=16" are bounds, too
    "*fp16[m, k]:16"     whose address 16 divides
    "*kfp16[m, k]"       to which the kernel does not write
    "i32", "i32:16"      an integer, one that 16 divides
    "i32:1"              one that is 1
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ferrule import specs
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.specs import DType
from ferrule.specs.deferred import dataclass

DTYPES: Final[Mapping[str, DType]] = MappingProxyType(
    {
        "i1": specs.Boolean,
        "u1": specs.Boolean,
        "i8": specs.Int8,
        "i16": specs.Int16,
        "i32": specs.Int32,
        "i64": specs.Int64,
        "u8": specs.Uint8,
        "u16": specs.Uint16,
        "u32": specs.Uint32,
        "u64": specs.Uint64,
        "fp16": specs.Float16,
        "bf16": specs.BFloat16,
        "fp32": specs.Float32,
        "fp64": specs.Float64,
        "fp8e4nv": specs.Float8E4M3FN,
        "fp8e5": specs.Float8E5M2,
        "fp8e4b8": specs.Float8E4M3FNUZ,
        "fp8e5b16": specs.Float8E5M2FNUZ,
        "fp8e4b15": specs.Float8E4M3B11FNUZ,
    }
)
"""Triton's names; for other dtypes (int4, complex numbers) Triton has no pointers."""

_NAMES: Final[Mapping[DType, str]] = MappingProxyType(
    {dtype: name for name, dtype in DTYPES.items() if name != "u1"}
)

INTEGERS: Final = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")


def is_float(name: str) -> bool:
    """Whether numbers of a Triton type are floats."""
    return name in DTYPES and DTYPES[name].kind == "float"


_TEXT: Final = re.compile(
    r"(?P<pointer>\*k?)?(?P<type>\w+)(?:\[(?P<dims>[^\]]*)\])?(?::(?P<hint>\w+))?"
)


@dataclass(frozen=True, slots=True)
class TypeText:
    """The parsed text of an example.  `strides` is None for a compact tensor."""

    dtype: DType
    is_pointer: bool = False
    shape: tuple[str, ...] = ()
    strides: tuple[str, ...] | None = None
    hint: str | None = None
    read_only: bool = False


def pointer_type(dtype: DType, what: str) -> str:
    """The Triton type of a pointer to elements of a dtype.  Raises CompileError if there is
    none."""
    name = _NAMES.get(dtype)
    if name is None:
        raise CompileError(
            Diagnostic(
                f"{what} has elements of {dtype.name}, to which Triton has no pointers",
                expected=", ".join(sorted({each.name for each in _NAMES})),
            )
        )
    return f"*{name}"


def number_type(dtype: DType, what: str) -> str:
    """The Triton type of a number of a dtype.  Raises CompileError if there is none."""
    if dtype is specs.Boolean:
        return "u1"
    name = _NAMES.get(dtype)
    if name is None or name.startswith("fp8"):
        raise CompileError(f"{what} is {dtype.name}, and Triton has no such numbers as parameters")
    return name


def read_type(text: str, what: str) -> TypeText:
    """The parsed example.  Raises CompileError for a text of another form."""
    found = _TEXT.fullmatch(_WORDS_APART.sub(r"\1?", text).replace(" ", ""))
    dtype = DTYPES.get(found["type"]) if found is not None else None
    is_pointer = found is not None and bool(found["pointer"])
    if found is None or dtype is None or (found["dims"] is not None and not is_pointer):
        raise CompileError(_unreadable(text, what))
    if found["hint"] is not None:
        _check_hint(text, what, found["hint"], found["type"], is_pointer)
    if not is_pointer:
        return TypeText(dtype, hint=found["hint"])
    shape, strides = _dims(found["dims"], text, what)
    return TypeText(dtype, True, shape, strides, found["hint"], found["pointer"] == "*k")


def _check_hint(text: str, what: str, hint: str, name: str, is_pointer: bool) -> None:
    allowed = ("16",) if is_pointer else ("16", "1") if name in INTEGERS else ()
    if hint not in allowed:
        begin = text[: text.rindex(":")].rstrip()
        raise CompileError(
            Diagnostic(
                f"{what} is {text!r}: nothing can be assumed with {':' + hint!r} of it",
                expected=" or ".join(f"{begin}:{each}" for each in allowed) or begin,
            )
        )


def _dims(dims: str | None, text: str, what: str) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """Sizes and strides; without brackets the tensor is a vector of any size."""
    if dims is None:
        return ("",), None
    sizes, colon, steps = dims.partition(":")
    shape = tuple(sizes.split(",")) if sizes else ()
    strides = tuple(steps.split(",")) if colon else None
    for word in (*shape, *(strides or ())):
        if not _is_dim(word):
            shown = word.replace("?", " ") or "nothing between two commas"
            raise CompileError(_no_size(f"{what} is {text!r}, in which {shown!r} is no size"))
    if strides is not None and len(strides) != len(shape):
        counts = f"{len(shape)} sizes and {len(strides)} strides"
        raise CompileError(_no_size(f"{what} is {text!r}, which has {counts}"))
    return shape, strides


def _no_size(message: str) -> Diagnostic:
    return Diagnostic(
        message,
        expected="names, with or without bounds, and numbers, between commas; then strides: "
        '"*fp32[m, 16<=n<=256]", "*fp16[m, k: s, 1]"',
        hint="a size that is computed of others has a name of its own; requires= compares them",
    )


_WORDS_APART: Final = re.compile(r"(\w)\s+(?=\w)")
"""Words with a space between them, which are not one word."""

_BOUNDED: Final = re.compile(r"(?:(-?\d+)<=)?([^\W\d]\w*)(?:<=(-?\d+)|>=(-?\d+))?")


@dataclass(frozen=True, slots=True)
class Word:
    """A symbolic size in a text: its name, and its bounds."""

    name: str
    min: int | None = None
    max: int | None = None


def read_word(word: str) -> Word | None:
    """The name and the bounds of a symbolic size; None for a word that is none."""
    found = _BOUNDED.fullmatch(word)
    if found is None or not specs.expr.is_name(found[2]) or (found[1] and found[4]):
        return None
    low, high = found[1] or found[4], found[3]
    return Word(found[2], None if low is None else int(low), None if high is None else int(high))


def _is_dim(word: str) -> bool:
    return word.isdecimal() or read_word(word) is not None


def _unreadable(text: str, what: str) -> Diagnostic:
    return Diagnostic(
        f"{what} is {text!r}, which says no type",
        expected='a Triton type such as "*fp32[m, n]", "*fp16[m, k: s, 1]:16", "i32", "i32:16" or '
        '"fp32", with one of ' + ", ".join(DTYPES),
        hint=_meant(text)
        or 'a size is "x.shape[0]", "x.strides[1]" or "x.numel", an expression over sizes '
        'lambda sig: sig["x"].shape[0] * 2',
    )


def _meant(text: str) -> str | None:
    """What may have been meant: a dtype by another name, a bracket, a pointer."""
    words = re.match(r"\*?k?\s*(\w+)", text)
    name = "" if words is None else words[1]
    other = next((known for dtype, known in _NAMES.items() if dtype.name == name.lower()), None)
    if other is None and name not in DTYPES and name.lower() in DTYPES:
        other = name.lower()
    if other is not None:
        return f"did you mean {text.replace(name, other)!r}?"
    if text.count("[") != text.count("]"):
        return "a bracket is missing"
    return f"a tensor is a pointer: did you mean '*{text}'?" if "[" in text else None
