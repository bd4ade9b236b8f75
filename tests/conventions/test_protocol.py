"""What ferrule reads of a convention from outside, and what a field of that name must be."""

from __future__ import annotations

from dataclasses import make_dataclass
from typing import Any

import pytest

from ferrule import compiler, specs
from ferrule.compiler import conventions
from ferrule.compiler.conventions import protocol

X = specs.Tensor("x", (4,), "float32")


def with_field(name: str, value: object) -> Any:
    """A convention that does nothing and has a field of its own."""
    methods: dict[str, Any] = {
        "codes": lambda self: (),
        "results": lambda self: (),
        "emit": lambda self, call: None,
        "when": None,
    }
    return make_dataclass("Mine", [(name, object)], namespace=methods, frozen=True)(value)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("steps", 3, "a tuple of calling conventions, but got int"),
        ("choices", "ab", "a tuple of calling conventions, but got str"),
        ("objects", 2, "a tuple of Tensors, but got int"),
        ("objects", ("x",), "a tuple of Tensors, but got tuple"),
        ("temporaries", None, "a tuple of Tensors, but got NoneType"),
        ("stream", "s", "a parameter of the signature or None, but got str"),
    ],
)
def test_a_field_that_ferrule_reads_otherwise_is_refused(
    name: str, value: object, expected: str
) -> None:
    """By its name: not by an error of the code that reads it."""
    words = f"{name} of Mine must be {expected}: ferrule reads this name"
    with pytest.raises(TypeError, match=words):
        compiler.build(specs.Signature("f", [X]), with_field(name, value))
    with pytest.raises(TypeError, match=words):
        conventions.Sequence([with_field(name, value)])


@pytest.mark.parametrize("name", [*protocol.OPTIONAL, "stream", "function", "code"])
def test_these_fields_may_be_empty(name: str) -> None:
    empty = () if name in protocol.OPTIONAL else None
    compiler.build(specs.Signature("f", [X]), with_field(name, empty))


@pytest.mark.parametrize("name", ["function", "code", "arguments", "text", "fields", "value"])
def test_other_fields_may_be_anything(name: str) -> None:
    compiler.build(specs.Signature("f", [X]), with_field(name, 3))
