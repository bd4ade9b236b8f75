"""The entry of the lowering: a host function and its signature become a `Program`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from ferrule.compiler.options import Target
from ferrule.language.dependencies.witness import Outer, Witness
from ferrule.language.fastmath import FMAD
from ferrule.language.ir import ops
from ferrule.language.ir.passes.cleanup import remove_unused
from ferrule.language.lowering import owners
from ferrule.language.lowering.context import Frame, Interpreter, Lowering, ProgramState
from ferrule.language.lowering.control import joins
from ferrule.language.lowering.objects.parameters import Receiver
from ferrule.language.lowering.python import calls, operators, records, results
from ferrule.language.lowering.python.expressions import decide, evaluate
from ferrule.language.lowering.python.return_annotations import annotation_of
from ferrule.language.lowering.python.statements import execute
from ferrule.language.lowering.tensors import whole_tensors
from ferrule.language.marks import promotes_as_cute
from ferrule.language.source import read_source
from ferrule.specs import Signature, Sym
from ferrule.specs.binding import Path, places_of
from ferrule.specs.conditions import Comparison

_PYTHON: Final = Interpreter(
    evaluate,
    decide,
    execute,
    operators.truth,
    records.unary,
    records.binary,
    records.compare,
    calls.apply,
    joins.choose,
    whole_tensors.require_inside,
)


def _sizes(signature: Signature) -> frozenset[Sym]:
    """The symbols that are sizes of tensors."""
    places = places_of(tuple(signature.params))
    return frozenset(p.dim for p in places if p.kind == "shape" and isinstance(p.dim, Sym))


def lower_program(
    function: Callable[..., Any],
    signature: Signature,
    constants: Mapping[str, Any],
    classes: Mapping[Path, Any] | None = None,
    variadic: tuple[str, tuple[str, ...]] | None = None,
    target: Target = "cpu",
    places: dict[ops.Op, object] | None = None,
    witness: Witness | None = None,
    fast_math: tuple[str, ...] = (),
    fmad: bool | None = None,
) -> ops.Program:
    """Lowers a host function whose run-time parameters are those of `signature`.

    `constants` has the compile-time parameters, `classes` the named tuples and dataclasses of
    tuples, `variadic` the name of `*args` and of its parameters.  Raises CompileError.  `places`
    gets the origin of each op (see `places`), `witness` the outer values that were read.
    `fast_math` are the flags of all functions, see `fastmath`; `fmad`: see `contracted`.
    """
    source = read_source(function)
    returns = annotation_of(function)
    state = ProgramState(dict(signature.symbols), target, returns=returns, name=signature.name)
    state.places = places
    state.fast_math, state.fmad = fast_math, fmad
    state.promotes_as_cute = promotes_as_cute(function)
    if state.promotes_as_cute:
        state.sizes = _sizes(signature)
    state.witness = witness or state.witness
    state.sources[function] = source
    state.witness.add_function(function)  # type: ignore[arg-type]
    if getattr(source.node, "returns", None) and "return" not in source.annotations:
        state.witness.add_returns(function, lambda: annotation_of(function), returns)
    low = Lowering("host", state, Frame(source, dict(constants)), _PYTHON)
    low.begin()
    receiver = Receiver(low, classes or {}, [])
    with low.builder.region() as region:
        for i, param in enumerate(signature.params):
            low.names[param.name] = receiver.receive(param, (i,), param.name)
        if variadic is not None:
            name, names = variadic
            low.names[name] = tuple(low.names[each] for each in names)
        lent = owners.lend(state, signature, receiver.leaves)
        low.execute(source.node.body)  # type: ignore[arg-type]
        result = results.finish(low, source.node, source.name)
    for error in state.unlaunched.values():
        raise error
    for each in state.sources.values():
        if isinstance(each.outer, Outer):
            state.witness.add_names(each.outer)
    host = ops.Function(signature.name, "host", tuple(receiver.leaves), region.freeze())
    kernels = tuple(dict.fromkeys(state.kernels.values()))
    made = frozenset(_made(host, signature))
    symbols = {s: n for s, n in state.symbols.items() if s in signature.symbols or s in made}
    relations = tuple(state.relations)
    facts = _facts(signature)
    program = ops.Program(signature.name, kernels, host, symbols, relations, result, made, facts)
    # Before products are contracted: an unused reader of a product would keep it apart.
    program = remove_unused(replace(program, objects=owners.objects(state, lent)))
    if not _is_marked(program):
        return program
    from ferrule.language.ir.passes.contract import contracted

    return contracted(program)


def _is_marked(program: ops.Program) -> bool:
    """Whether a product or a sum is one that may be contracted, or a function has a formula with
    fma."""
    functions = (program.host, *program.kernels)
    found = (op for each in functions for op in each.facts.ops)
    return any(isinstance(op, (ops.Unary, ops.Binary)) and FMAD in op.flags for op in found)


def _facts(signature: Signature) -> tuple[Comparison, ...]:
    """What the requirements of the function say of its symbols."""
    if not signature.requires:
        return ()
    from ferrule.specs.implied import comparisons

    return comparisons(signature.requires)


def _made(host: ops.Function, signature: Signature) -> Iterator[Sym]:
    """The symbols that get their values from new tensors, numbers, or received values."""
    for op in host.facts.ops:
        yield from (symbol for symbol in op.symbols if symbol not in signature.symbols)
