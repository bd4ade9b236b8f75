"""In the process of jaxlib's bindings: sorts and scatters of StableHLO become calls of functions.

The function that compares or combines elements is the operation's region; the other one is text.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from ferrule.compiler.errors import CompileError
from ferrule.frontends.mlir.passes.scatter import Scatter, scatter_text
from ferrule.frontends.mlir.passes.sort import sort_text
from ferrule.frontends.mlir.reading import symbol, walk


def call_for_each(ir: Any, module: Any) -> None:
    """Replaces each sort and scatter by a call.  Raises CompileError for dynamic sizes."""
    found = [each for each in walk(module.operation) if each.name in _FORMS]
    for number, each in enumerate(found):
        types = [value.type for value in (*each.operands, *each.results)]
        if any(size < 0 for kind in types for size in kind.shape):
            raise CompileError(f"{each.name} of a dynamic size cannot be lowered: {types[0]}")
        _FORMS[each.name](ir, module, each, number)


def last_of(block: Any) -> Any:
    """The last operation of a block."""
    return list(block.operations)[-1].operation


def end_block(ir: Any, block: Any, name: str) -> None:
    """Ends a block with the operation of this name instead of `stablehlo.return`."""
    last = last_of(block)
    with ir.InsertionPoint(last), last.location:
        ir.Operation.create(name, [], list(last.operands))
    last.erase()


def _sort(ir: Any, module: Any, sort: Any, number: int) -> None:
    """A sort merges sorted runs: it is stable, and compares n log n times."""
    types = [each.type for each in sort.operands]
    if not types[0].shape:  # one element is sorted
        for old, new in zip(sort.results, sort.operands, strict=True):
            old.replace_all_uses_with(new)
        sort.erase()
        return
    axis = int(sort.attributes["dimension"]) % len(types[0].shape)
    elements = [str(kind.element_type) for kind in types]
    text = sort_text(number, list(types[0].shape), elements, axis)
    _replace(ir, module, sort, (f"ferrule_less_{number}", f"ferrule_sort_{number}"), text)


def _scatter(ir: Any, module: Any, scatter: Any, number: int) -> None:
    text = scatter_text(number, _described(scatter))
    _replace(ir, module, scatter, (f"ferrule_update_{number}", f"ferrule_scatter_{number}"), text)


def _described(scatter: Any) -> Scatter:
    dialect = import_module("jaxlib.mlir.dialects.stablehlo")
    dims = dialect.ScatterDimensionNumbers(scatter.attributes["scatter_dimension_numbers"])
    count = len(scatter.results)
    types = [each.type for each in scatter.operands]
    places, updates = types[count], types[count + 1]
    return Scatter(
        tuple(types[0].shape),
        tuple(places.shape),
        tuple(updates.shape),
        tuple(str(kind.element_type) for kind in types[:count]),
        str(places.element_type),
        tuple(dims.update_window_dims),
        tuple(dims.inserted_window_dims),
        tuple(dims.input_batching_dims),
        tuple(dims.scatter_indices_batching_dims),
        tuple(dims.scattered_dims_to_operand_dims),
        dims.index_vector_dim,
    )


def _replace(ir: Any, module: Any, operation: Any, names: tuple[str, str], text: str) -> None:
    """Replaces an operation by a call of the second function, which the text has; its region
    becomes the first one."""
    region, callee = names
    _move(ir, module, operation, region)
    _add(ir, module, region, text)
    with ir.InsertionPoint(operation), operation.location:
        made = ir.Operation.create(
            "func.call",
            [each.type for each in operation.results],
            list(operation.operands),
            attributes={"callee": ir.FlatSymbolRefAttr.get(callee)},
        )
    for old, new in zip(operation.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    operation.erase()


def _move(ir: Any, module: Any, operation: Any, name: str) -> None:
    """Moves the region of an operation into a function."""
    block = list(operation.regions[0].blocks)[0]
    kinds = [each.type for each in block.arguments]
    results = [each.type for each in last_of(block).operands]
    attributes = {
        "sym_name": ir.StringAttr.get(name),
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(kinds, results)),
        "sym_visibility": ir.StringAttr.get("private"),
    }
    with ir.InsertionPoint(module.body):
        made = ir.Operation.create("func.func", attributes=attributes, regions=1)
    block.append_to(made.regions[0])
    end_block(ir, list(made.regions[0].blocks)[0], "func.return")


def _add(ir: Any, module: Any, declared: str, text: str) -> None:
    """Adds the functions of a text, which call a function of this name, to the module."""
    kind = next(
        str(each.operation.attributes["function_type"].value)
        for each in module.body.operations
        if symbol(each.operation) == declared
    )
    added = ir.Module.parse(f"func.func private @{declared}{kind}\n{text}")
    with ir.InsertionPoint(module.body):
        for each in list(added.body.operations)[1:]:
            each.operation.clone()


_FORMS: Final[dict[str, Callable[[Any, Any, Any, int], None]]] = {
    "stablehlo.sort": _sort,
    "stablehlo.scatter": _scatter,
}
