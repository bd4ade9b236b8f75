"""Random statements about views, fragments, vectors, and functions inside a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ferrule.specs import DType, Int32
from random_programs.expressions import ARITHMETIC, Helper, Scope, Tensor, name_of
from random_programs.indices import masked

if TYPE_CHECKING:
    from random_programs.statements import Block, Statements

Make = Callable[["Block", int], "list[str]"]
INDENT = "    "


def makers(statements: Statements, depth: int) -> dict[Make, int]:
    """The statements of this kind, by weight."""
    weights: dict[Make, int] = {
        partial(view, statements): 1,
        partial(fragment, statements): 1,
        partial(vector, statements): 1,
        partial(changed, statements): 2,
        partial(dense, statements): 4,
    }
    if depth > 0:
        weights[partial(closure, statements)] = 1
    return weights


def view(statements: Statements, block: Block, depth: int) -> list[str]:
    """A row or column of a tensor with two dims, which is read like any other tensor."""
    choices = statements.expressions.choices
    wide = [tensor for tensor in block.scope.tensors if tensor.ndim == 2]
    if not wide:
        return statements.declare(block, depth)
    tensor, axis = choices.one(wide), choices.below(2)
    at = statements.expressions.index(tensor, axis, block.scope)
    key = f"{at}, None" if axis == 0 else f"None, {at}"
    name = statements.names.fresh("v")
    block.scope.tensors += (Tensor(name, tensor.dtype),)
    return [f"{name} = {tensor.name}[{key}]"]


def fragment(statements: Statements, block: Block, depth: int) -> list[str]:
    """A tensor of a few elements that the thread has for itself, and a number for each."""
    choices, dtype = statements.expressions.choices, _dtype(statements)
    name, count = statements.names.fresh("f"), 1 + choices.below(3)
    lines = [f"{name} = fe.make_fragment({count}, {name_of(dtype)})"]
    for i in range(count):
        lines.append(f"{name}[{i}] = {statements.expressions.of(dtype, block.scope, 1)}")
    made = Tensor(name, dtype)
    block.scope.tensors += (made,)
    block.fragments += (made,)
    block.scope.numbers |= {f"{name}[{i}]": dtype for i in range(count)}
    if choices.chance(30):
        loaded = statements.names.fresh("u")
        lines.append(f"{loaded} = {name}.load()")
        _add_vector(block, loaded, count, dtype)
    return lines


def vector(statements: Statements, block: Block, depth: int) -> list[str]:
    """A new vector, every element of which is one number."""
    if not block.place:  # In a host function `fe.full` is a whole tensor.
        return fragment(statements, block, depth)
    choices, dtype = statements.expressions.choices, _dtype(statements)
    name, count = statements.names.fresh("u"), 1 + choices.below(3)
    number = statements.expressions.of(dtype, block.scope, 1)
    _add_vector(block, name, count, dtype)
    return [f"{name} = fe.full(({count},), {number}, {name_of(dtype)})"]


def changed(statements: Statements, block: Block, depth: int) -> list[str]:
    """A vector gets another value, made of itself and numbers, element by element."""
    if not block.vectors:
        return vector(statements, block, depth)
    choices = statements.expressions.choices
    name = choices.one(list(block.vectors))
    count, dtype = block.vectors[name]
    others = {u: kind for u, (size, kind) in block.vectors.items() if size == count}
    scope = Scope(others | block.scope.numbers, divides=False, whole=True)
    value = statements.expressions.number(scope, 2)
    op = choices.one(ARITHMETIC)
    return [f"{name} = ({name} {op} {value.text}.to({name_of(dtype)})).to({name_of(dtype)})"]


def closure(statements: Statements, block: Block, depth: int) -> list[str]:
    """A function inside the function, which reads the names around it as they are when called."""
    choices, names = statements.expressions.choices, statements.names
    name = names.fresh("g")
    parameters = {names.fresh("y"): _dtype(statements) for _ in range(1 + choices.below(2))}
    kept = Scope({**block.scope.numbers, **parameters}, list(block.scope.constants))
    value = statements.expressions.number(kept, 2)
    block.scope.helpers += (Helper(name, parameters, (value.dtype,)),)
    given = ", ".join(parameters)
    if choices.chance(50):
        return [f"{name} = lambda {given}: {value.text}"]
    return [f"def {name}({given}):", f"{INDENT}return {value.text}"]


def dense(statements: Statements, block: Block, depth: int) -> list[str]:
    """A loop whose body is one statement, which can become vectors: a sum, or stores to a row."""
    choices, names = statements.expressions.choices, statements.names
    index, size = names.fresh("j"), choices.one((64, 64, 16, 5))
    scope = block.scope.inner()
    scope.numbers[index] = Int32
    header = f"for {index} in range({size}):"
    if block.rows and choices.chance(50):
        row = block.rows
        first = block.place or statements.expressions.index(row, 0, scope)
        at = index
        if choices.chance(40):
            at = masked(choices, row.last, [index, *statements.expressions.whole_numbers(scope)])
        value = _simple(statements, row.dtype, scope)
        return [header, f"{INDENT}{row.name}[{first}, {at}] = {value}"]
    dtype, total = _dtype(statements), names.fresh()
    block.scope.numbers[total] = scope.numbers[total] = dtype
    block.own.append(total)
    added = _simple(statements, dtype, scope)
    body = f"{INDENT}{total} = {name_of(dtype)}({total} {choices.one(ARITHMETIC)} {added})"
    return [f"{total} = {name_of(dtype)}(1)", header, body]


def _simple(statements: Statements, dtype: DType, scope: Scope) -> str:
    """A number that most often is only an element, so that vectors are made of its loop."""
    tables = [tensor for tensor in scope.tensors if tensor.last]
    if not tables or statements.expressions.choices.chance(40):
        return statements.expressions.of(dtype, scope, 1)
    found = statements.expressions.element(replace(scope, tensors=tuple(tables)))
    return f"{name_of(dtype)}({found.text})"


def _dtype(statements: Statements) -> DType:
    return statements.expressions.choices.one(statements.expressions.dtypes)


def _add_vector(block: Block, name: str, count: int, dtype: DType) -> None:
    block.vectors[name] = (count, dtype)
    block.scope.numbers |= {f"{name}[{i}]": dtype for i in range(count)}
