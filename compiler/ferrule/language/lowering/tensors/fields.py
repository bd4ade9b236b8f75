"""Memory of tuples, named tuples and dataclasses: each of their numbers in a tensor of its own.

What can be done with it is what can be done with each of these tensors alike: elements are read and
written, pointers are moved, and a layout is laid over them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from ferrule.language.layouts.coordinates import has_free
from ferrule.language.lowering import structures
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.numbers import forms
from ferrule.language.lowering.numbers.sizes import named, size_numbers
from ferrule.language.lowering.tensors import elements, views
from ferrule.language.values import Fielded, PointerView, TensorView
from ferrule.specs import DType


def allocated(form: Any, name: str, one: Callable[[DType], TensorView | PointerView]) -> Fielded:
    """New memory of this form; `one` allocates that of a dtype."""
    return Fielded(form, tuple(one(dtype) for _, dtype in structures.leaves(form)), name)


def read(low: Lowering, memory: Fielded, at: tuple[Any, ...], node: ast.AST) -> Any:
    """`memory[i]`: a value of its form; with a None in the coordinate, memory again."""
    found = [elements.read(low, item, at, node) for item in memory.items]
    if has_free(at):
        return Fielded(memory.form, tuple(found), memory.name)
    rest = iter(found)
    return structures.mapped(lambda _: next(rest), memory.form)


def write(low: Lowering, memory: Fielded, at: tuple[Any, ...], value: Any, node: ast.AST) -> None:
    """`memory[i] = value`, of a value of its form."""
    if has_free(at):
        low.fail(
            node,
            f"a part of {memory.name} is assigned to, whose elements are {forms.text(memory.form)}",
            expected="one element at a time",
        )
    what = f"an element of {memory.name}"
    stored = forms.fitted(low, value, memory.form, what, node)
    pairs = zip(memory.items, structures.leaves(stored), strict=True)
    for item, (_, number) in pairs:
        elements.write(low, item, at, number, node)


def fill(
    memory: Fielded, low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> None:
    """`memory.fill(value)`: writes one value to every element."""
    if len(args) != 1 or kwargs:
        low.fail(node, "fill takes one value", expected=f"{memory.name}.fill(value)")
    what = f"an element of {memory.name}"
    value = forms.fitted(low, args[0], memory.form, what, node)
    for item, (_, number) in zip(memory.items, structures.leaves(value), strict=True):
        assert isinstance(item, TensorView)
        elements.fill(low, item, [number], {}, node)


def each(memory: Fielded, change: Callable[[Any], Any]) -> Fielded:
    """The memory with each of its tensors or pointers changed alike."""
    return Fielded(memory.form, tuple(map(change, memory.items)), memory.name)


def arithmetic(low: Lowering, op: ast.operator, left: Any, right: Any, node: ast.AST) -> Fielded:
    """`p + i`, `i + p`, `p - i`."""
    if isinstance(left, Fielded) and isinstance(right, Fielded):
        low.fail(node, "two pointers are operands", expected="p + i, p - i, p[i]")
    memory = left if isinstance(left, Fielded) else right
    if any(isinstance(item, TensorView) for item in memory.items):
        low.fail(
            node, f"the tensor {memory.name} is an operand, whose elements are several numbers"
        )

    def moved(pointer: Any) -> Any:
        pair = (pointer, right) if memory is left else (left, pointer)
        return low.binary(op, *pair, node)

    return each(memory, moved)


TENSOR: Final[dict[str, Callable[[Lowering, Fielded], Any]]] = {
    "shape": lambda low, f: size_numbers(low, _first(f).layout.shape),
    "stride": lambda low, f: size_numbers(low, _first(f).layout.stride),
    "layout": lambda low, f: named(low, _first(f).layout),
    "ndim": lambda low, f: len(_first(f).layout),
    "iterator": lambda low, f: each(f, partial(views.iterator, low)),
    "dtype": lambda low, f: f.form,
    "element_type": lambda low, f: f.form,
}
"""Attributes of memory with a layout."""
POINTER: Final[dict[str, Callable[[Lowering, Fielded], Any]]] = dict.fromkeys(
    ("dtype", "element_type", "value_type"), TENSOR["dtype"]
)
"""Attributes of pointers to it."""


def _first(memory: Fielded) -> TensorView:
    first = memory.items[0]
    assert isinstance(first, TensorView)
    return first


def is_pointer(memory: Fielded) -> bool:
    """Whether it is the address of memory whose end is not known."""
    return isinstance(memory.items[0], PointerView)
