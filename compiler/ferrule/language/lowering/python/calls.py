"""Calls: intrinsics are found by identity, helpers are inlined, kernels bound, the rest is ordinary
Python."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import functools
import inspect
import types
from typing import Any, Final

from ferrule.compiler.errors import CompileError
from ferrule.language.dependencies.mutable import ATOMS
from ferrule.language.faces import maths
from ferrule.language.faces.base import IntTuple, OutsideKernel, Shape, Stride, Tile, printf
from ferrule.language.faces.calls import ExternFunction, ImportedFunction
from ferrule.language.faces.containers import type_key_of
from ferrule.language.layouts import ComposedLayout, Layout, Swizzle, is_static
from ferrule.language.lowering import structures
from ferrule.language.lowering.arguments import bound, method_of
from ferrule.language.lowering.closures import Closure
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.control.mutation import require_inside, require_seen
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.handles import is_container
from ferrule.language.lowering.numbers import coercion, typed_constants
from ferrule.language.lowering.python import (
    conversions,
    inlining,
    intrinsics,
    records,
)
from ferrule.language.marks import JitFunction, KernelFunction
from ferrule.language.values import (
    RUN_TIME,
    BoundMethod,
    ConstantTable,
    Handle,
    KernelCall,
    ShownText,
    TensorView,
    is_run_time,
    is_value_class,
)
from ferrule.runtime import Function
from ferrule.specs import DType
from ferrule.specs.dtypes import ALL_DTYPES

_CONTAINERS: Final = (
    *(zip, enumerate, tuple, list, reversed, dict),
    *(functools.partial, types.SimpleNamespace),
)
_TAKE_ITEMS: Final = (*_CONTAINERS, sum, min, max, any, all, map, filter, sorted)
_MOVES: Final = (
    "append",
    "extend",
    "__iadd__",
    "__imul__",
    "__ior__",
    "copy",
    "clear",
    "reverse",
    "items",
    "keys",
    "values",
    "update",
)
_FRAMED: Final = (globals, locals, vars, dir, eval, exec)
"""Functions that use the frame of the caller, which would be the compiler's."""
_PUTS: Final = ("append", "extend", "insert", "update", "setdefault", "__iadd__", "__ior__")
"""Methods of containers that store their arguments."""
_TEXTS: Final = (print, str, repr, format)
_LOOKS: Final = (isinstance, issubclass, callable, type, id, hasattr, getattr, repr, str)
"""Functions that only inspect their arguments, and advance no iterator."""
_OF_MATHS: Final = frozenset(name for name, _ in inspect.getmembers(maths, inspect.isfunction))
_OF_NUMBERS: Final = tuple(f"ferrule.language.faces.{x}" for x in ("bits", "more_arch", "packed"))
"""Modules of the library whose functions make numbers with dtypes of Python's."""
_KEYED: Final = ("insert", "pop", "get", "setdefault")
_PYTHON_NUMBERS: Final = {
    int: "fe.Int64(x)",
    float: "fe.Float64(x)",
    bool: "x != 0",
    complex: "fe.Complex64(x, y)",
}


def call(low: Lowering, node: ast.Call) -> Any:
    """The value of a call."""
    callee = _callee(low, node.func)
    if (callee is builtins.any or callee is builtins.all) and not node.keywords:
        if len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp):
            from ferrule.language.lowering.python import comprehensions

            return comprehensions.truth_of(low, node.args[0], is_any=callee is builtins.any)
    if callee is printf and node.args and isinstance(node.args[0], ast.JoinedStr):
        from ferrule.language.lowering.objects import printing

        rest = [low.evaluate(each) for each in node.args[1:]]
        given = [printing.FString.of(low, node.args[0]), *rest]
        return printing.printf(low, given, _keywords(low, node), node)
    args, kwargs = _arguments(low, node), _keywords(low, node)  # in Python's order
    if kwargs and not _PLACES.isdisjoint(kwargs):
        kwargs = _without_places(callee, kwargs)
    return apply(low, callee, args, kwargs, node)


_PLACES: Final = frozenset(("loc", "ip"))
"""Keywords of each function of CuTe DSL, for the place of what it makes; ferrule knows it."""


def _without_places(callee: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keywords of a function of ours without those, which are None."""
    module = str(getattr(callee, "__module__", None) or type(callee).__module__)
    if not module.startswith("ferrule."):
        return kwargs
    return {
        name: value for name, value in kwargs.items() if name not in _PLACES or value is not None
    }


def _callee(low: Lowering, func: ast.expr) -> Any:
    """The callee; `stride` of a tensor is a tuple, but `a.stride(0)` is one of its items."""
    if not (isinstance(func, ast.Attribute) and func.attr == "stride"):
        return low.evaluate(func)
    owner = low.evaluate(func.value)
    if isinstance(owner, TensorView):
        return method_of("tensors.tensor_facts", func.attr)(low, owner)
    return records.attribute(low, owner, func.attr, func)


def apply(
    low: Lowering, callee: Any, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    """The value of a call with these arguments."""
    match callee:
        case BoundMethod():
            return callee.call(low, args, kwargs, node)
        case Swizzle():
            from ferrule.language.lowering.tensors import layout_functions

            (index,) = bound(low, "index", args, kwargs, node)
            return layout_functions.swizzle(low, callee, index, node)
        case Layout() | ComposedLayout():
            from ferrule.language.lowering.tensors import layout_functions

            return layout_functions.apply(low, callee, args, kwargs, node)
        case Closure():
            return inlining.inline(low, callee.source, args, kwargs, node)
        case KernelFunction():
            return bind_kernel(low, callee, args, kwargs, node)
        case functools.partial():
            given = {**callee.keywords, **kwargs}
            return apply(low, callee.func, [*callee.args, *args], given, node)
        case types.MethodType(__func__=(JitFunction() | KernelFunction()) as marked):
            return apply(low, marked, [callee.__self__, *args], kwargs, node)
        case Function():
            from ferrule.language.lowering.objects import compiled_calls

            return compiled_calls.call_compiled(low, callee, args, kwargs, node)
        case ExternFunction() | ImportedFunction() | Handle():
            from ferrule.language.lowering.objects import foreign_calls

            return foreign_calls.apply(low, callee, args, kwargs, node)
        case JitFunction():
            low.state.witness.add_attribute(callee, "function", callee.function)
            return inlining.inline(
                low, inlining.source_of(low, callee.function, node), args, kwargs, node
            )
    return _apply_object(low, callee, args, kwargs, node)


def _attribute(low: Lowering, callee: Any, args: list[Any], node: ast.Call) -> tuple[Any] | None:
    """`getattr(x, name)`; of a run-time value also with a default, and `hasattr`."""
    fits = len(args) in (2, 3) and isinstance(args[1], str)
    if callee is builtins.getattr and fits and len(args) == 2:
        return (records.attribute(low, args[0], args[1], node),)
    if not fits or not isinstance(args[0], RUN_TIME) or (len(args) == 3 and callee is hasattr):
        return None
    try:
        value = records.attribute(low, args[0], args[1], node)
    except CompileError:
        return (False,) if callee is builtins.hasattr else (args[2],)
    return (True,) if callee is builtins.hasattr else (value,)


def _apply_object(
    low: Lowering, callee: Any, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    """The value of a call of a compile-time object that is no function of the language."""
    if callee is super:
        return _super(low, args, kwargs, node)
    if (callee is builtins.getattr or callee is builtins.hasattr) and not kwargs:
        found = _attribute(low, callee, args, node)
        if found is not None:
            return found[0]
    if isinstance(callee, DType):
        return conversions.convert_to(low, callee, args, kwargs, node)
    if any(isinstance(each, ConstantTable) for each in args) and callee in _TAKE_ITEMS:
        args = [_unrolled(low, each, node) for each in args]
    marked = inspect.getattr_static(type(callee), "__call__", None)
    if isinstance(marked, JitFunction):
        low.state.witness.add_member(type(callee), "__call__")
        return apply(low, marked, [callee, *args], kwargs, node)
    key = type_key_of(callee)
    if key is not None:
        from ferrule.language.lowering.objects import reflection

        return reflection.construct(low, key, args, kwargs, node)
    intrinsic = intrinsics.find(callee)
    if intrinsic is not None:
        return intrinsic(low, args, kwargs, node)
    return _python(low, callee, args, kwargs, node)


def _unrolled(low: Lowering, value: Any, node: ast.AST) -> Any:
    """The items of a part of a table; any other value as it is."""
    if not isinstance(value, ConstantTable):
        return value
    from ferrule.language.lowering.numbers import constant_tables

    return constant_tables.items(low, value, node)


def _super(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`super()` in a method, with its class and its first argument; `super(cls, self)`."""
    if not args and not kwargs:
        names = low.frame.source.node.args
        first = [arg.arg for arg in (*names.posonlyargs, *names.args)][:1]
        if not first or "__class__" not in low.frame.source.outer:
            low.fail(
                node,
                "super() is called where there is no class and no first argument",
                expected="super() in a method, or super(cls, self)",
            )
        args = [low.lookup("__class__", node), low.lookup(first[0], node)]
    return coercion.at_compile_time(low, node, lambda: super(*args, **kwargs))


def _arguments(low: Lowering, node: ast.Call) -> list[Any]:
    args: list[Any] = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            value = _unrolled(low, low.evaluate(argument.value), argument)
            if isinstance(value, RUN_TIME):
                low.fail(argument, f"{describe(value)} cannot be unpacked")
            args += coercion.at_compile_time(low, argument, functools.partial(list, value))
        elif isinstance(argument, ast.GeneratorExp):
            args.append(inlining.Taken(low.evaluate(argument).rest))
        else:
            args.append(low.evaluate(argument))
    return args


def _keywords(low: Lowering, node: ast.Call) -> dict[str, Any]:
    kwargs: dict[str, Any] = {}
    for keyword in node.keywords:
        value = low.evaluate(keyword.value)
        if keyword.arg is None:
            more = coercion.at_compile_time(low, keyword, functools.partial(dict, value))
        else:
            more = {keyword.arg: value}
        for name in more.keys() & kwargs.keys():
            low.fail(keyword, f"the argument {name!r} is given twice")
        kwargs.update(more)
    return kwargs


def _python(
    low: Lowering, callee: Any, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    """A call of ordinary Python; a function with run-time values is inlined instead."""
    if isinstance(callee, RUN_TIME) or not callable(callee):
        low.fail(node, f"{describe(callee)} cannot be called")
    asked = next((each for each in _FRAMED if each is callee), None)
    if asked is not None and (not args or asked in (builtins.eval, builtins.exec)):
        low.fail(
            node,
            f"{callee.__name__}() reads the names of the function that calls it, and there is none "
            f"while compiling",
            hint="name the value",
        )
    if low.state.region is not None:
        _see_namespaces(low, (getattr(callee, "__self__", None), *args, *kwargs.values()))
    if _makes_text(callee) or any(isinstance(each, ShownText) for each in args):
        return _text(low, callee, args, kwargs, node)
    return _ordinary(low, callee, args, kwargs, node)


def _see_namespaces(low: Lowering, values: tuple[Any, ...]) -> None:
    """Records that a call of ordinary Python may read every attribute of these."""
    for value in values:
        if isinstance(value, types.SimpleNamespace) and low.state.region is not None:
            for name in vars(value):
                low.state.region.reads_setting((id(value), name))


def _makes_text(callee: Any) -> bool:
    """Whether this shows its arguments: `print`, `str`, `repr`, `"...".format`."""
    # By identity: a class of the program may compare its objects with anything.
    if any(callee is each for each in _TEXTS):
        return True
    return isinstance(getattr(callee, "__self__", None), str)


def _text(
    low: Lowering, callee: Any, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    """A call that shows its arguments, as far as they are known."""
    from ferrule.language.lowering.objects import shown

    owner = getattr(callee, "__self__", None)
    if callee is builtins.repr and is_run_time(args):
        args, callee = [shown.nested(low, args[0])], builtins.str
    given = [shown.known(low, each) for each in args]
    named = {name: shown.known(low, value) for name, value in kwargs.items()}
    result = _ordinary(low, callee, given, named, node)
    if result is None or not shown.is_shown((owner, *given, *named.values())):
        return result
    if isinstance(result, str):
        return ShownText(result)
    low.fail(
        node,
        f"{callee.__name__} of a text that shows a value of the call, which is not known yet",
        hint="such a text is for print() while compiling",
    )


def _ordinary(
    low: Lowering, callee: Any, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    """A call of ordinary Python with values that are known, or that it only moves."""
    opaque = [value for value in (*args, *kwargs.values()) if _is_opaque(value)]
    owner = getattr(callee, "__self__", None)
    symbolic = any(map(_is_symbolic, (*args, *kwargs.values())))
    numbers = _has_numbers((owner, *args, *kwargs.values())) or _annotates_numbers(callee)
    if opaque or symbolic or numbers or is_run_time(owner) or is_run_time(callee):
        found = _compiled_in_place(low, callee, args, kwargs, node)
        if found is not None:
            return found[0]
        if callee in (map, filter, sorted, functools.reduce):
            from ferrule.language.lowering.python import functionals

            return functionals.emitter(callee)(low, args, kwargs, node)
    if callee in _CONTAINERS and any(map(is_container, args)):
        low.fail(
            node,
            f"{callee.__name__} of {describe(args[0])}, whose length is known at the call alone",
            hint="write for v in x, or for i in range(len(x)) and x[i]",
        )
    if (opaque or is_run_time(owner)) and not _moves_values(callee, args):
        what = opaque[0] if opaque else owner
        low.fail(
            node,
            f"{getattr(callee, '__name__', callee)!s} is ordinary Python and cannot be called "
            f"with {'a run-time value' if is_run_time(what) else 'a function defined here'}",
            hint=_python_hint(callee),
        )
    if opaque and isinstance(owner, (list, dict, set)) and callee.__name__ in _PUTS:
        require_inside(low, owner, node)
    _note_called(low, callee)
    if not _only_looks(callee, (owner, *args, *kwargs.values())):
        low.state.changes += 1
    if low.state.region is not None:
        low.state.region.runs(callee, *args, *kwargs.values())
        if callee not in _LOOKS:
            require_seen(low, (owner, callee, *args, *kwargs.values()), node)
    try:
        return coercion.at_compile_time(low, node, lambda: _run(callee, args, kwargs))
    except OutsideKernel as error:
        if isinstance(callee, type) and is_value_class(callee):
            return _made(low, callee, args, kwargs, node)
        if isinstance(callee, types.MethodType):
            return apply(low, callee.__func__, [callee.__self__, *args], kwargs, node)
        if isinstance(callee, types.FunctionType):
            return inlining.inline(low, inlining.source_of(low, callee, node), args, kwargs, node)
        low.fail(node, str(error))


def _run(callee: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Runs ordinary Python.

    OutsideKernel where it computes with numbers of dtypes that it made itself, `Int32(n) * 2`:
    they have operators in compiled code alone.
    """
    try:
        return callee(*args, **kwargs)
    except TypeError as error:
        of_numbers = any(f"'{dtype.__name__}'" in str(error) for dtype in ALL_DTYPES)
        if str(error).startswith("unsupported operand") and of_numbers:
            raise OutsideKernel(str(error)) from None
        raise


def _only_looks(callee: Any, values: tuple[Any, ...]) -> bool:
    """Whether a call changes no object: of a function that inspects, or of a builtin one with
    values that do not change."""
    if any(callee is each for each in _LOOKS):
        return True
    is_number = any(callee is each for each in _PYTHON_NUMBERS)
    is_builtin = is_number or isinstance(callee, types.BuiltinFunctionType)
    return is_builtin and all(type(value) in ATOMS for value in values)


def _note_called(low: Lowering, callee: Any) -> None:
    """Records the functions that a call of ordinary Python runs: a function, the methods of a class
    or an object."""
    witness = low.state.witness
    witness.add_called(callee)
    if isinstance(callee, type):
        for name in ("__new__", "__init__", "__post_init__"):
            witness.add_called(witness.add_member(callee, name))
    else:
        witness.add_special(callee, "__call__")


def _compiled_in_place(
    low: Lowering, callee: Any, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> tuple[Any] | None:
    """A call of code written in Python, with run-time values; None for anything else."""
    if callee is dataclasses.replace:
        return (records.replace(low, args, kwargs, node),)
    if records.is_named_tuple_method(callee, "_replace"):
        return (records.replace_items(low, callee.__self__, args, kwargs, node),)
    if records.is_named_tuple_method(callee, "_asdict") and not args and not kwargs:
        return (callee(),)
    if records.is_record_class(callee) and is_run_time([*args, *kwargs.values()]):
        return (records.construct(low, callee, args, kwargs, node),)
    if isinstance(callee, type) and is_value_class(callee):
        return (_made(low, callee, args, kwargs, node),)
    if isinstance(callee, types.MethodType):
        return (apply(low, callee.__func__, [callee.__self__, *args], kwargs, node),)
    if isinstance(callee, types.FunctionType):
        return (inlining.inline(low, inlining.source_of(low, callee, node), args, kwargs, node),)
    method = inspect.getattr_static(type(callee), "__call__", None)
    if isinstance(method, types.FunctionType):
        low.state.witness.add_member(type(callee), "__call__")
        return (
            inlining.inline(
                low, inlining.source_of(low, method, node), [callee, *args], kwargs, node
            ),
        )
    return None


def _made(low: Lowering, cls: type, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """A new object of values: its class computes in `__init__` as any code of the program."""
    made: Any = object.__new__(cls)
    low.state.has_objects = True
    low.state.witness.add_member(cls, "__init__")
    apply(low, cls.__init__, [made, *args], kwargs, node)  # type: ignore[misc]
    return made


def _has_numbers(values: tuple[Any, ...]) -> bool:
    """Whether Python would compute with numbers that have a dtype, without knowing it."""
    return any(typed_constants.holds_typed(value) or records.has_numbers(value) for value in values)


def _annotates_numbers(callee: Any) -> bool:
    """Whether a function annotates a parameter with a dtype, or computes with dtypes."""
    if not isinstance(callee, types.FunctionType):
        return False
    if callee.__module__ in _OF_NUMBERS:
        return True
    hints = structures.hints(callee)
    return any(isinstance(hints[name], DType) for name in hints.keys() - {"return"})


def _is_opaque(value: Any) -> bool:
    """Whether ordinary Python cannot compute with a value."""
    return isinstance(value, Closure) or is_run_time(value)


def _is_symbolic(value: Any) -> bool:
    """Whether this contains symbolic sizes: a user's function would see symbols."""
    if isinstance(value, (tuple, list)):
        return any(map(_is_symbolic, value))
    return isinstance(value, Layout) and not is_static(value)


def _moves_values(callee: Any, args: list[Any]) -> bool:
    """Whether this only moves values: a container's constructor or method."""
    owner = getattr(callee, "__self__", None)
    if type(owner) in (list, dict, tuple, set):
        name = callee.__name__
        return name in _MOVES or (name in _KEYED and not any(map(is_run_time, args[:1])))
    return callee in _CONTAINERS


def _python_hint(callee: Any) -> str | None:
    if callee in _PYTHON_NUMBERS:
        return f"write {_PYTHON_NUMBERS[callee]}"
    if callee is builtins.range:
        return (
            "write `for i in range(...):` as a loop that adds or stores; downwards, "
            "range(n - 1, -1, -1); comprehensions and generators go over what is known "
            "while compiling"
        )
    if callee is builtins.sum:
        return "add them in a loop"
    name = getattr(callee, "__name__", "")
    if name in _OF_MATHS:
        return f"write fe.math.{name}"
    if getattr(callee, "__module__", None) == "numpy":
        return "NumPy runs while compiling; keep numbers in tensors that the caller passes"
    return "write a function in Python for it: those are compiled in place"


_OF_SIZES: Final = (Shape, Stride, Tile, IntTuple)
"""The annotations of parameters whose items are sizes."""


def bind_kernel(
    low: Lowering, kernel: KernelFunction, args: list[Any], kwargs: dict[str, Any], node: ast.AST
) -> KernelCall:
    """`kernel(a, b)`: its arguments by name, waiting for `.launch`."""
    if low.kind == "kernel":
        low.fail(node, "a kernel cannot launch a kernel", hint="call a plain helper function")
    low.state.witness.add_attribute(kernel, "function", kernel.function)
    source = inlining.source_of(low, kernel.function, node)
    bound = inlining.bind(low, source, args, kwargs, node)
    of_sizes = (n for n, each in bound.annotations.items() if any(each is of for of in _OF_SIZES))
    call = KernelCall(kernel, bound.arguments, frozenset(of_sizes))
    low.state.unlaunched[call] = low.error(
        node,
        "the kernel is called but never launched",
        expected="kernel(a, b).launch(grid=..., block=...)",
    )
    return call
