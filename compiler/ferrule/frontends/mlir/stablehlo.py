"""StableHLO, of which JAX makes its functions: lowered to `linalg` by the passes of jaxlib.

    fe.frontends.mlir.compile(jax.jit(f).lower(x))

jaxlib has bindings of MLIR of its own, without upstream's lowering to LLVM IR.  They run in a
process of their own and give the text of a module of upstream's dialects.  Loops, branches, sorts
and scatters, which jaxlib's passes leave, become operations of `scf` before.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.mlir.child import alone
from ferrule.compiler.mlir.diagnostics import Step
from ferrule.compiler.mlir.session import Report
from ferrule.frontends.mlir.modules import Given, has_stablehlo
from ferrule.frontends.mlir.outlined import call_for_each, end_block, last_of
from ferrule.frontends.mlir.reading import symbol, walk

_DIALECTS: Final = ("stablehlo.", "chlo.")
_PACKAGE: Final = "jaxlib"
_FIRST: Final = "builtin.module(func.func(chlo-legalize-to-stablehlo))"
_PASSES: Final = "builtin.module(stablehlo-legalize-to-linalg)"
_SIMPLIFIED: Final = ("stablehlo.slice", "stablehlo.reduce")
_FOREIGN: Final = ("mhlo.", "jax.", "sdy.")
"""The attributes of JAX, which other bindings do not know."""


def without_stablehlo(given: Given) -> Given:
    """The module without StableHLO, if it contains it and jaxlib is installed.

    Raises CompileError for operations that jaxlib's passes do not lower.
    """
    source = given.source if isinstance(given.source, str) else ""
    if not has_stablehlo(source) or not _is_installed():
        return given
    return Given(alone(_lowered, source), given.name)


def _is_installed() -> bool:
    from importlib.util import find_spec

    return find_spec(_PACKAGE) is not None


# ---- in the process of jaxlib's bindings ----


def _lowered(report: Report, source: str) -> str:
    """The module of a text, lowered to upstream's dialects."""
    ir = import_module("jaxlib.mlir.ir")
    passes = import_module("jaxlib.mlir.passmanager")
    dialect = import_module("jaxlib.mlir.dialects.stablehlo")
    dialect.register_stablehlo_passes()
    lowering = passes.PassManager
    with ir.Context() as context, ir.Location.unknown():
        _load_dialects(ir, context)
        context.allow_unregistered_dialects = True
        # Running passes loads the dialects that they make operations of.
        lowering.parse(_PASSES).run(ir.Module.parse("").operation)
        try:
            report(Step("read the module of StableHLO", source))
            module = ir.Module.parse(source)
            report(Step("lower StableHLO"))
            lowering.parse(_FIRST).run(module.operation)
            _prepare(ir, module)
            lowering.parse(_PASSES).run(module.operation)
        except (ir.MLIRError, ValueError) as error:
            raise CompileError(f"jaxlib cannot lower the module of StableHLO: {error}") from None
        _require_lowered(module)
        return str(module.operation.get_asm(enable_debug_info=True))


def _load_dialects(ir: Any, context: Any) -> None:
    """Loads the dialects in which JAX writes modules, as JAX itself does."""
    registry = ir.DialectRegistry()
    import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for name in ("chlo", "stablehlo"):
        import_module(f"jaxlib.mlir.dialects.{name}").register_dialect(context)


def _prepare(ir: Any, module: Any) -> None:
    """Makes loops and branches operations of `scf`, sorts and scatters calls of functions, and
    removes the attributes of JAX."""
    for each in reversed(list(walk(module.operation))):  # inner ones first
        if each.name == "stablehlo.while":
            _loop(ir, each)
        elif each.name in ("stablehlo.if", "stablehlo.case"):
            _branch(ir, each)
    call_for_each(ir, module)
    for each in [each for each in walk(module.operation) if each.name in _SIMPLIFIED]:
        _simplify(ir, each)
    _rename(ir, module)
    for each in walk(module.operation):
        _without_foreign(ir, each)


def _simplify(ir: Any, operation: Any) -> None:
    """Replaces two operations that jaxlib's passes do not lower: a slice without elements, which
    may begin at the end, by an empty tensor, and a reduction along no dim by what it reduces."""
    results = list(operation.results)
    if operation.name == "stablehlo.slice" and 0 in results[0].type.shape:
        with ir.InsertionPoint(operation), operation.location:
            values = [ir.Operation.create("tensor.empty", [results[0].type]).result]
    elif operation.name == "stablehlo.reduce" and not len(operation.attributes["dimensions"]):
        values = list(operation.operands)[: len(results)]
    else:
        return
    for result, value in zip(results, values, strict=True):
        result.replace_all_uses_with(value)
    operation.erase()


def _rename(ir: Any, module: Any) -> None:
    """Gives the function `main` of a module `jit_f` the name `f`."""
    name = module.operation.attributes
    given = str(name["sym_name"].value) if "sym_name" in name else ""
    wanted = given.removeprefix("jit_")
    there = {symbol(each.operation): each.operation for each in module.body.operations}
    if given.startswith("jit_") and wanted.isidentifier() and wanted not in there:
        if "main" in there:
            there["main"].attributes["sym_name"] = ir.StringAttr.get(wanted)


def _without_foreign(ir: Any, operation: Any) -> None:
    for name in [each.name for each in _named(operation.attributes)]:
        if name.startswith(_FOREIGN):
            del operation.attributes[name]
        elif name in ("arg_attrs", "res_attrs"):
            kept = [
                ir.DictAttr.get(
                    {e.name: e.attr for e in _named(each) if not e.name.startswith(_FOREIGN)}
                )
                for each in operation.attributes[name]
            ]
            operation.attributes[name] = ir.ArrayAttr.get(kept)


def _named(attributes: Any) -> Iterator[Any]:
    return (attributes[position] for position in range(len(attributes)))


def _branch(ir: Any, branch: Any) -> None:
    """Replaces a `stablehlo.if` or `stablehlo.case` by an `scf.index_switch`; a number for which
    there is no region means the last one."""
    regions = list(branch.regions)
    if branch.name == "stablehlo.if":  # its regions are those for true and for false
        regions.reverse()
    with ir.InsertionPoint(branch), branch.location:
        flag = ir.RankedTensorType(branch.operands[0].type).element_type
        number = ir.Operation.create("tensor.extract", [flag], [branch.operands[0]]).result
        cast = "arith.index_castui" if branch.name == "stablehlo.if" else "arith.index_cast"
        index = ir.Operation.create(cast, [ir.IndexType.get()], [number]).result
        made = ir.Operation.create(
            "scf.index_switch",
            [each.type for each in branch.results],
            [index],
            attributes={"cases": ir.DenseI64ArrayAttr.get(list(range(len(regions) - 1)))},
            regions=len(regions),
        )
    for old, new in zip([regions[-1], *regions[:-1]], made.regions, strict=True):
        list(old.blocks)[0].append_to(new)
        end_block(ir, list(new.blocks)[0], "scf.yield")
    for result, new_result in zip(branch.results, made.results, strict=True):
        result.replace_all_uses_with(new_result)
    branch.erase()


def _loop(ir: Any, loop: Any) -> None:
    """Replaces a `stablehlo.while` by an `scf.while`."""
    with ir.InsertionPoint(loop), loop.location:
        types = [each.type for each in loop.results]
        made = ir.Operation.create("scf.while", types, list(loop.operands), regions=2)
    for old, new in zip(loop.regions, made.regions, strict=True):
        list(old.blocks)[0].append_to(new)
    test, body = (list(region.blocks)[0] for region in made.regions)
    holds = last_of(test)
    with ir.InsertionPoint(holds), holds.location:
        bit = ir.IntegerType.get_signless(1)
        flag = ir.Operation.create("tensor.extract", [bit], [holds.operands[0]]).result
        ir.Operation.create("scf.condition", [], [flag, *test.arguments])
    holds.erase()
    end_block(ir, body, "scf.yield")
    for old, new in zip(loop.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()


def _require_lowered(module: Any) -> None:
    for each in walk(module.operation):
        if each.name.startswith(_DIALECTS):
            called = "call_target_name"
            target = f" of {each.attributes[called]}" if called in each.attributes else ""
            raise CompileError(
                Diagnostic(
                    f"{each.name}{target} is left by the passes of jaxlib, which lower StableHLO "
                    "to linalg",
                    expected="operations that they lower, loops, branches, sorts and scatters",
                    hint="write the function with other operations of JAX, or call it with "
                    "jax.ffi from a function of JAX",
                )
            )
