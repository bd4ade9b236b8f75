"""In the process of MLIR: complex numbers that a function takes or returns become two floats each.

TVM-FFI has no complex numbers.  The argument `z` becomes the arguments `z_re` and `z_im`, of which
the function makes it; a complex result becomes two results.
"""

from __future__ import annotations

from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.mlir.session import Session
from ferrule.frontends.mlir.passes.reach import restrict
from ferrule.frontends.mlir.reading import argument_names, attribute, reached, symbol, walk

_PARTS: Final = ("re", "im")
_COMPLEX: Final = ("complex<f16>", "complex<bf16>", "complex<f32>", "complex<f64>")


def without_complex_numbers(
    session: Session, module: Any, function: Any, text: str, *, schedules: bool
) -> None:
    """Rewrites the function, if its type has complex numbers; `text` and `schedules` as for
    `described` and `restrict`.

    Raises CompileError if it calls itself.
    """
    kind = function.attributes["function_type"].value
    if not any(str(each) in _COMPLEX for each in (*kind.inputs, *kind.results)):
        return
    restrict(session, module, function, schedules=schedules)
    for each in reached(module, function):
        if each.name == "func.call" and str(each.attributes["callee"].value) == symbol(function):
            raise CompileError(
                Diagnostic(
                    f"@{symbol(function)} calls itself, and takes or returns complex numbers",
                    session.place(each),
                    hint="let another function of the module call it, and name that one",
                )
            )
    names = list(argument_names(function, text))
    with session.ir.Location.unknown():
        inputs = _split_arguments(session.ir, function, names)
        results = _split_results(session.ir, function)
        type_ = session.ir.FunctionType.get(inputs, results)
        function.attributes["function_type"] = session.ir.TypeAttr.get(type_)


def _split_arguments(ir: Any, function: Any, names: list[str]) -> list[Any]:
    """Splits the arguments, and returns the types of all.

    Each gets a new one, or two, behind all others, which are erased then.
    """
    block = function.regions[0].blocks[0]
    old = list(block.arguments)
    first = ir.InsertionPoint.at_block_begin(block)
    for argument, name in zip(old, names, strict=True):
        if str(argument.type) in _COMPLEX:
            element = ir.ComplexType(argument.type).element_type
            places = [ir.Location.name(f"{name}_{each}") for each in _PARTS]
            parts = [block.add_argument(element, place) for place in places]
            with first:
                made = ir.Operation.create("complex.create", [argument.type], parts).result
        else:
            made = block.add_argument(argument.type, argument.location)
        argument.replace_all_uses_with(made)
    _repeat(ir, function, "arg_attrs", [each.type for each in old])
    for _ in old:
        block.erase_argument(0)
    return [each.type for each in block.arguments]


def _repeat(ir: Any, function: Any, name: str, types: list[Any]) -> None:
    """Gives both parts of a complex number the attributes that it had."""
    said = attribute(function, name)
    if said is not None:
        pairs = zip(types, said, strict=True)
        kept = [one for kind, one in pairs for _ in range(1 + (str(kind) in _COMPLEX))]
        function.attributes[name] = ir.ArrayAttr.get(kept)


def _split_results(ir: Any, function: Any) -> list[Any]:
    """Splits the results, and returns the types of all."""
    types = list(function.attributes["function_type"].value.results)
    for each in [each for each in walk(function) if each.name == "func.return"]:
        values = [part for value in each.operands for part in _parts(ir, each, value)]
        with ir.InsertionPoint(each):
            ir.Operation.create("func.return", [], values)
        each.erase()
    _repeat(ir, function, "res_attrs", types)
    return [
        part
        for kind in types
        for part in ([ir.ComplexType(kind).element_type] * 2 if str(kind) in _COMPLEX else [kind])
    ]


def _parts(ir: Any, before: Any, value: Any) -> list[Any]:
    """The parts of a returned value, computed before an operation; other values as they are."""
    if str(value.type) not in _COMPLEX:
        return [value]
    part = ir.ComplexType(value.type).element_type
    with ir.InsertionPoint(before):
        return [ir.Operation.create(f"complex.{each}", [part], [value]).result for each in _PARTS]
