"""Inlines Python functions where they are called: their sources and arguments."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from ferrule.compiler.errors import CompileError
from ferrule.language.lowering.context import MAX_INLINE_DEPTH, Frame, Lowering, is_library
from ferrule.language.lowering.control import exits
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.python import conversions
from ferrule.language.source import Source, is_generator, read_source
from ferrule.language.values import Generated
from ferrule.specs.deferred import dataclass


class Taken(list[Any]):
    """The items of a generator expression as an argument: Python's functions consume all."""


def source_of(low: Lowering, function: Any, node: ast.AST) -> Source:
    """The source of a called function, read once for each program."""
    sources = low.state.sources
    if function not in sources:
        try:
            sources[function] = read_source(function, helper=True)
            low.state.witness.add_function(function)
        except CompileError as error:
            found = error.diagnostic
            if found.span is not None:
                raise
            raise low.error(node, found.message, expected=found.expected, hint=found.hint) from None
    return sources[function]


@dataclass(frozen=True, slots=True)
class Bound:
    """The arguments of a call by parameter name, and the annotation of each parameter."""

    arguments: dict[str, Any]
    annotations: dict[str, Any]


def bind(
    low: Lowering, source: Source, args: list[Any], kwargs: dict[str, Any], node: ast.AST
) -> Bound:
    """Binds arguments to parameters, with defaults; Python's own rules."""
    with low.entered(Frame(source, {}, low.frame, node)):
        signature = signature_of(low, source)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        low.fail(node, f"{source.name}(): {error}")
    bound.apply_defaults()
    annotations = {name: each.annotation for name, each in signature.parameters.items()}
    names = {}
    for name, annotation in annotations.items():
        value = bound.arguments[name]
        value = Generated(value) if isinstance(value, Taken) else value
        names[name] = conversions.annotated(low, value, annotation, node, name)
    return Bound(names, annotations)


def signature_of(low: Lowering, source: Source) -> inspect.Signature:
    """A function's signature from its AST; dtype annotations are evaluated."""
    kinds = inspect.Parameter
    arguments = source.node.args
    parameters = [_parameter(low, arg, kinds.POSITIONAL_ONLY) for arg in arguments.posonlyargs]
    parameters += [_parameter(low, arg, kinds.POSITIONAL_OR_KEYWORD) for arg in arguments.args]
    if arguments.vararg is not None:
        parameters.append(_parameter(low, arguments.vararg, kinds.VAR_POSITIONAL))
    parameters += [_parameter(low, arg, kinds.KEYWORD_ONLY) for arg in arguments.kwonlyargs]
    if arguments.kwarg is not None:
        parameters.append(_parameter(low, arguments.kwarg, kinds.VAR_KEYWORD))
    return inspect.Signature(parameters)


def _parameter(low: Lowering, arg: ast.arg, kind: Any) -> inspect.Parameter:
    empty, source = inspect.Parameter.empty, low.frame.source
    annotation = source.annotations.get(arg.arg, empty)
    if annotation is empty and arg.annotation is not None:
        annotation = annotation_of(low, arg.annotation)
    default = source.defaults.get(arg.arg, empty)
    return inspect.Parameter(arg.arg, kind, default=default, annotation=annotation)


def annotation_of(low: Lowering, node: ast.expr) -> Any:
    """The object of an annotation; a string is evaluated as an expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        text = node.value
        parsed = coercion.at_compile_time(low, node, lambda: ast.parse(text, mode="eval").body)
        for inner in ast.walk(parsed):
            ast.copy_location(inner, node)
        return low.evaluate(parsed)
    return low.evaluate(node)


def inline(
    low: Lowering, source: Source, args: list[Any], kwargs: dict[str, Any], node: ast.AST
) -> Any:
    """Inlines a call of a helper, and returns its result."""
    if low.frame.depth() >= MAX_INLINE_DEPTH:
        low.fail(node, f"calls are nested more than {MAX_INLINE_DEPTH} deep: is this a recursion?")
    bound = bind(low, source, args, kwargs, node)
    frame = Frame(source, bound.arguments, low.frame, node)
    library = is_library(source)
    with (
        low.entered(frame),
        low.builder.relaxed(source.fast_math),
        low.builder.inlined(source.fmad, library=library),
    ):
        if isinstance(source.node, ast.Lambda):
            return low.evaluate(source.node.body)
        if is_generator(source.node):
            from ferrule.language.lowering.python import comprehensions

            return comprehensions.items_of(low, source.node)
        low.execute(source.node.body)
        return exits.result(low, source.node, source.name)
