"""Examples as text: Triton's names of types, with what a tensor looks like."""

from __future__ import annotations

import pytest

from ferrule import specs
from ferrule.compiler.errors import CompileError
from ferrule.frontends.triton.types import (
    DTYPES,
    TypeText,
    Word,
    number_type,
    pointer_type,
    read_type,
    read_word,
)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("i32", TypeText(specs.Int32)),
        ("i32:16", TypeText(specs.Int32, hint="16")),
        ("i64:1", TypeText(specs.Int64, hint="1")),
        ("bf16", TypeText(specs.BFloat16)),
        ("*fp32", TypeText(specs.Float32, True, ("",))),
        ("*fp32[]", TypeText(specs.Float32, True)),
        ("*fp16[m, 64]:16", TypeText(specs.Float16, True, ("m", "64"), hint="16")),
        ("*i8[1 <= m <= 4, n]", TypeText(specs.Int8, True, ("1<=m<=4", "n"))),
        (
            "*kfp8e4nv[m,n: s, 1]",
            TypeText(specs.Float8E4M3FN, True, ("m", "n"), ("s", "1"), read_only=True),
        ),
    ],
)
def test_texts(text: str, read: TypeText) -> None:
    assert read_type(text, "x") == read


@pytest.mark.parametrize(
    "text",
    [
        "f32",
        "",
        "*",
        "fp32[n]",
        "*fp32[m",
        "*fp32[m: 1, 2]",
        "*fp32[m+1]",
        "fp32:16",
        "*i8:1",
        "i8:3",
    ],
)
def test_what_is_no_text_is_refused(text: str) -> None:
    with pytest.raises(CompileError, match="the example of 'x' is "):
        read_type(text, "the example of 'x'")


@pytest.mark.parametrize("name", [name for name in DTYPES if name != "u1"])
def test_every_dtype_has_its_name(name: str) -> None:
    assert pointer_type(DTYPES[name], "x") == f"*{name}"


def test_what_triton_has_no_name_for_is_refused() -> None:
    with pytest.raises(CompileError, match="complex64"):
        pointer_type(specs.Complex64, "x")
    with pytest.raises(CompileError, match="no such numbers"):
        number_type(specs.Float8E5M2, "x")


@pytest.mark.parametrize(
    ("word", "read"),
    [
        ("n", Word("n")),
        ("n<=65536", Word("n", None, 65536)),
        ("16<=n<=65536", Word("n", 16, 65536)),
        ("n>=2", Word("n", 2)),
        ("-4<=s", Word("s", -4)),
        *((word, None) for word in ("8", "", "n<5", "n==5", "1<=n>=2", "for", "n<=m", "5<=n<=")),
    ],
)
def test_words_of_sizes(word: str, read: Word | None) -> None:
    assert read_word(word) == read
