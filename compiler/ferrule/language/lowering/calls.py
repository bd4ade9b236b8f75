"""Calls: intrinsics by identity, helpers inlined, kernels bound, the rest ordinary Python."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import types
from typing import Any, Final

from ferrule.compiler.errors import CompileError
from ferrule.language.decorators import JitFunction, KernelFunction
from ferrule.language.faces import OutsideKernel
from ferrule.language.lowering import intrinsics, operators
from ferrule.language.lowering.closures import Closure
from ferrule.language.lowering.context import MAX_INLINE_DEPTH, Frame, Lowering
from ferrule.language.source import Source, read_source
from ferrule.language.values import RUN_TIME, BoundMethod, KernelCall, Number, is_run_time
from ferrule.specs import DType, Numeric

_CONTAINERS: Final = (zip, enumerate, tuple, list, reversed, dict)
_MOVES: Final = (
    "append",
    "extend",
    "copy",
    "clear",
    "reverse",
    "items",
    "keys",
    "values",
    "update",
)
_KEYED: Final = ("insert", "pop", "get", "setdefault")
_PYTHON_NUMBERS: Final = {int: "fe.Int32(x)", float: "fe.Float32(x)", bool: "x != 0"}


def call(low: Lowering, node: ast.Call) -> Any:
    """The value of a call."""
    callee = low.evaluate(node.func)
    args = _arguments(low, node)
    kwargs = _keywords(low, node)
    match callee:
        case BoundMethod():
            return callee.call(low, args, kwargs, node)
        case Closure():
            return inline(low, callee.source, args, kwargs, node)
        case KernelFunction():
            return bind_kernel(low, callee, args, kwargs, node)
        case JitFunction():
            return inline(low, source_of(low, callee.function, node), args, kwargs, node)
    if isinstance(callee, DType):
        return convert_to(low, callee, args, kwargs, node)
    intrinsic = intrinsics.find(callee)
    if intrinsic is not None:
        return intrinsic(low, args, kwargs, node)
    return _python(low, callee, args, kwargs, node)


def _arguments(low: Lowering, node: ast.Call) -> list[Any]:
    args: list[Any] = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            value = low.evaluate(argument.value)
            if isinstance(value, RUN_TIME):
                low.fail(argument, f"{operators.describe(value)} cannot be unpacked")
            args += operators.at_compile_time(low, argument, functools.partial(list, value))
        else:
            args.append(low.evaluate(argument))
    return args


def _keywords(low: Lowering, node: ast.Call) -> dict[str, Any]:
    kwargs: dict[str, Any] = {}
    for keyword in node.keywords:
        value = low.evaluate(keyword.value)
        if keyword.arg is None:
            more = operators.at_compile_time(low, keyword, functools.partial(dict, value))
        else:
            more = {keyword.arg: value}
        for name in more.keys() & kwargs.keys():
            low.fail(keyword, f"the argument {name!r} is given twice")
        kwargs.update(more)
    return kwargs


def _python(
    low: Lowering, callee: Any, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    """A call of ordinary Python; a function that meets run-time values is inlined instead."""
    if isinstance(callee, RUN_TIME):
        low.fail(node, f"{operators.describe(callee)} cannot be called")
    opaque = [value for value in (*args, *kwargs.values()) if _is_opaque(value)]
    if isinstance(callee, types.FunctionType) and opaque:
        return inline(low, source_of(low, callee, node), args, kwargs, node)
    if isinstance(callee, types.MethodType) and opaque:
        return inline(
            low, source_of(low, callee.__func__, node), [callee.__self__, *args], kwargs, node
        )
    owner = getattr(callee, "__self__", None)
    if (opaque or is_run_time(owner)) and not _moves_values(callee, args):
        what = opaque[0] if opaque else owner
        low.fail(
            node,
            f"{getattr(callee, '__name__', callee)!s} is ordinary Python and cannot be called "
            f"with {'a run-time value' if is_run_time(what) else 'a function defined here'}",
            hint=_python_hint(callee),
        )
    try:
        return operators.at_compile_time(low, node, lambda: callee(*args, **kwargs))
    except OutsideKernel as error:
        if isinstance(callee, types.FunctionType):
            return inline(low, source_of(low, callee, node), args, kwargs, node)
        low.fail(node, str(error))


def _is_opaque(value: Any) -> bool:
    """Whether ordinary Python could not compute with a value."""
    return isinstance(value, Closure) or is_run_time(value)


def _moves_values(callee: Any, args: list[Any]) -> bool:
    """Whether this only moves values about: a container's constructor or method."""
    owner = getattr(callee, "__self__", None)
    if type(owner) in (list, dict, tuple, set):
        name = callee.__name__
        return name in _MOVES or (name in _KEYED and not any(map(is_run_time, args[:1])))
    is_named_tuple = isinstance(callee, type) and hasattr(callee, "_fields")
    return callee in _CONTAINERS or (is_named_tuple and issubclass(callee, tuple))


def _python_hint(callee: Any) -> str | None:
    if callee in _PYTHON_NUMBERS:
        return f"write {_PYTHON_NUMBERS[callee]}"
    if callee is builtins.range:
        return "write `for i in range(...)` itself; downwards, range(n - 1, -1, -1)"
    if callee is builtins.sum:
        return "add them in a loop"
    if getattr(callee, "__module__", None) in ("math", "numpy", "cmath"):
        return "use the functions of fe.math"
    if callee is builtins.print:
        return "print shows values known at compile time only"
    return "write a function in Python for it: those are compiled in place"


def source_of(low: Lowering, function: Any, node: ast.AST) -> Source:
    """The source of a function that is called here, read once for each program."""
    sources = low.state.sources
    if function not in sources:
        try:
            sources[function] = read_source(function)
        except CompileError as error:
            found = error.diagnostic
            if found.span is not None:
                raise
            raise low.error(node, found.message, expected=found.expected, hint=found.hint) from None
    return sources[function]


def convert_to(
    low: Lowering, dtype: DType, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    """`fe.Float32(x)`: a conversion of a run-time number, or a constant with a type."""
    if len(args) != 1 or kwargs:
        low.fail(node, f"{dtype.__name__} takes one value, but got {len(args) + len(kwargs)}")
    value = args[0]
    if isinstance(value, RUN_TIME):
        _require_scalar(low, dtype, node)
        return operators.lift(
            low,
            (value,),
            node,
            lambda x: operators.convert(low, operators.as_number(low, x, node), dtype),
        )
    return operators.at_compile_time(low, node, lambda: dtype(operators.plain(value)))


def _require_scalar(low: Lowering, dtype: DType, node: ast.AST) -> None:
    small_float = dtype.kind == "float" and dtype.bits < 16
    if dtype.kind == "complex" or dtype.bits < 8 or small_float:
        low.fail(node, f"{dtype.name} is a storage type: it has no scalar values")


def annotated(low: Lowering, value: Any, annotation: Any, node: ast.AST) -> Any:
    """A value as an annotation wants it: numbers in the annotated dtype, the rest as it is."""
    if not isinstance(annotation, DType):
        return value
    if isinstance(value, Number):
        _require_scalar(low, annotation, node)
        return operators.convert(low, value, annotation)
    value = operators.plain(value)
    if operators.is_python_number(value) and not isinstance(value, Numeric):
        return operators.at_compile_time(low, node, lambda: annotation(value))
    return value


def bind(
    low: Lowering, source: Source, args: list[Any], kwargs: dict[str, Any], node: ast.AST
) -> dict[str, Any]:
    """Arguments by parameter name, defaults filled in; Python's own rules."""
    with low.entered(Frame(source, {}, low.frame, node)):
        signature = _signature(low, source)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        low.fail(node, f"{source.name}(): {error}")
    bound.apply_defaults()
    names = {}
    for parameter in signature.parameters.values():
        value = bound.arguments[parameter.name]
        names[parameter.name] = annotated(low, value, parameter.annotation, node)
    return names


def _signature(low: Lowering, source: Source) -> inspect.Signature:
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
    empty = inspect.Parameter.empty
    return inspect.Parameter(
        arg.arg,
        kind,
        default=low.frame.source.defaults.get(arg.arg, empty),
        annotation=empty if arg.annotation is None else annotation_of(low, arg.annotation),
    )


def annotation_of(low: Lowering, node: ast.expr) -> Any:
    """The object that an annotation names; a string is read as an expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        text = node.value
        parsed = operators.at_compile_time(low, node, lambda: ast.parse(text, mode="eval").body)
        for inner in ast.walk(parsed):
            ast.copy_location(inner, node)
        return low.evaluate(parsed)
    return low.evaluate(node)


def inline(
    low: Lowering, source: Source, args: list[Any], kwargs: dict[str, Any], node: ast.AST
) -> Any:
    """Lowers a call of a helper in place, and gives what it returns."""
    if low.frame.depth() >= MAX_INLINE_DEPTH:
        low.fail(node, f"calls are nested more than {MAX_INLINE_DEPTH} deep: is this a recursion?")
    names = bind(low, source, args, kwargs, node)
    frame = Frame(source, names, low.frame, node)
    with low.entered(frame):
        if isinstance(source.node, ast.Lambda):
            return low.evaluate(source.node.body)
        returned = low.execute(source.node.body)
        return None if returned is None else returned.value


def bind_kernel(
    low: Lowering, kernel: KernelFunction, args: list[Any], kwargs: dict[str, Any], node: ast.AST
) -> KernelCall:
    """`kernel(a, b)`: its arguments by name, waiting for `.launch`."""
    if low.kind == "kernel":
        low.fail(node, "a kernel cannot launch a kernel", hint="call a plain helper function")
    source = source_of(low, kernel.function, node)
    call = KernelCall(kernel, bind(low, source, args, kwargs, node))
    low.state.unlaunched[call] = low.error(
        node,
        "the kernel is called but never launched",
        expected="kernel(a, b).launch(grid=..., block=...)",
    )
    return call
