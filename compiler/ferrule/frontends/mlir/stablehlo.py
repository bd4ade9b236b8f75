"""StableHLO, of which JAX makes its functions: lowered to `linalg` by the passes of jaxlib.

    fe.frontends.mlir.compile(jax.jit(f).lower(x))

jaxlib has bindings of MLIR of its own, without upstream's lowering to LLVM IR.  They run in a
process of their own and give the text of a module of upstream's dialects.  Loops, branches and
sorts, which jaxlib's passes leave, become operations of `scf` before.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.mlir.child import alone
from ferrule.compiler.mlir.said import Step
from ferrule.compiler.mlir.session import Report
from ferrule.frontends.mlir.modules import Given, has_stablehlo
from ferrule.frontends.mlir.passes.sort import sort_text
from ferrule.frontends.mlir.reading import symbol, walk

_DIALECTS: Final = ("stablehlo.", "chlo.")
_PACKAGE: Final = "jaxlib"
_FIRST: Final = "builtin.module(func.func(chlo-legalize-to-stablehlo))"
_PASSES: Final = "builtin.module(stablehlo-legalize-to-linalg)"
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
    """Makes loops, branches and sorts operations of `scf`, and removes the attributes of JAX."""
    for each in reversed(list(walk(module.operation))):  # inner ones first
        if each.name == "stablehlo.while":
            _loop(ir, each)
        elif each.name in ("stablehlo.if", "stablehlo.case"):
            _branch(ir, each)
    for number, each in enumerate([e for e in walk(module.operation) if _is_sort(e)]):
        _Sort(ir, module, each, number).rewrite()
    _rename(ir, module)
    for each in walk(module.operation):
        _without_foreign(ir, each)


def _is_sort(operation: Any) -> bool:
    return bool(operation.name == "stablehlo.sort")


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
        _end(ir, list(new.blocks)[0], "scf.yield")
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
    holds = _last(test)
    with ir.InsertionPoint(holds), holds.location:
        bit = ir.IntegerType.get_signless(1)
        flag = ir.Operation.create("tensor.extract", [bit], [holds.operands[0]]).result
        ir.Operation.create("scf.condition", [], [flag, *test.arguments])
    holds.erase()
    _end(ir, body, "scf.yield")
    for old, new in zip(loop.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()


def _last(block: Any) -> Any:
    return list(block.operations)[-1].operation


def _end(ir: Any, block: Any, name: str) -> None:
    """Ends a block with the operation of this name instead of `stablehlo.return`."""
    last = _last(block)
    with ir.InsertionPoint(last), last.location:
        ir.Operation.create(name, [], list(last.operands))
    last.erase()


class _Sort:
    """Replaces a `stablehlo.sort` by calls of a function that merges sorted runs: it is stable, and
    compares n log n times."""

    __slots__ = ("_ir", "_module", "_number", "_sort")

    def __init__(self, ir: Any, module: Any, sort: Any, number: int) -> None:
        self._ir: Final = ir
        self._module: Final = module
        self._sort: Final = sort
        self._number: Final = number

    def rewrite(self) -> None:
        ir, sort = self._ir, self._sort
        types = [each.type for each in sort.operands]
        if not types[0].shape:  # one element is sorted
            for old, new in zip(sort.results, sort.operands, strict=True):
                old.replace_all_uses_with(new)
            sort.erase()
            return
        if any(size < 0 for kind in types for size in kind.shape):
            raise CompileError(f"stablehlo.sort of a dynamic size cannot be lowered: {types[0]}")
        self._add_comparator()
        axis = int(sort.attributes["dimension"]) % len(types[0].shape)
        elements = [str(kind.element_type) for kind in types]
        self._add(sort_text(self._number, list(types[0].shape), elements, axis))
        with ir.InsertionPoint(sort), sort.location:
            callee = ir.FlatSymbolRefAttr.get(f"ferrule_sort_{self._number}")
            made = ir.Operation.create(
                "func.call", types, list(sort.operands), attributes={"callee": callee}
            )
        for old, new in zip(sort.results, made.results, strict=True):
            old.replace_all_uses_with(new)
        sort.erase()

    def _add_comparator(self) -> None:
        """Moves the comparator into a function."""
        ir = self._ir
        block = list(self._sort.regions[0].blocks)[0]
        kinds = [each.type for each in block.arguments]
        results = [each.type for each in _last(block).operands]
        attributes = {
            "sym_name": ir.StringAttr.get(f"ferrule_less_{self._number}"),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(kinds, results)),
            "sym_visibility": ir.StringAttr.get("private"),
        }
        with ir.InsertionPoint(self._module.body):
            made = ir.Operation.create("func.func", attributes=attributes, regions=1)
        block.append_to(made.regions[0])
        _end(ir, list(made.regions[0].blocks)[0], "func.return")

    def _add(self, text: str) -> None:
        """Adds the functions of a text to the module."""
        less = next(
            str(each.operation.attributes["function_type"].value)
            for each in self._module.body.operations
            if symbol(each.operation) == f"ferrule_less_{self._number}"
        )
        declared = f"func.func private @ferrule_less_{self._number}{less}\n"
        module = self._ir.Module.parse(declared + text)
        with self._ir.InsertionPoint(self._module.body):
            for each in list(module.body.operations)[1:]:
                each.operation.clone()


def _require_lowered(module: Any) -> None:
    for each in walk(module.operation):
        if each.name.startswith(_DIALECTS):
            raise CompileError(
                Diagnostic(
                    f"{each.name} is left by the passes of jaxlib, which lower StableHLO to linalg",
                    expected="operations that they lower, loops, branches and sorts",
                    hint="write the function with other operations of JAX, or call it with "
                    "jax.ffi from a function of JAX",
                )
            )
