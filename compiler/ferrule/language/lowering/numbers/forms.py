"""Forms of values of several numbers: tuples, named tuples and dataclasses with a dtype in place of
each number, such as `(Float32, Int32)`.

The numbers of such a value are shuffled, reduced and kept in memory one by one.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable
from typing import Any, Final

from ferrule.language.lowering import structures
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion
from ferrule.language.promotion import stores_implicitly
from ferrule.language.values import ComplexNumber, Number, Vector, is_run_time
from ferrule.specs import DType
from ferrule.specs.dtypes import as_dtype

_FORMS: Final = "a number, or a tuple, named tuple or dataclass of numbers"


def of_elements(low: Lowering, wanted: Any, what: str, node: ast.AST) -> Any:
    """The form of elements: a dtype, a tuple of forms, or a class or object with a form in each
    field."""
    if isinstance(wanted, type) and not isinstance(wanted, DType) and _fields(wanted):
        return _of_class(low, wanted, what, node)
    if structures.parts(wanted) is not None:
        wanted = _with_complex(wanted)
    if isinstance(wanted, Vector) and all(_is_dtype(item) for item in wanted.items):
        return wanted  # of a vector in a library function of ours
    if structures.parts(wanted) and not is_run_time(wanted):
        return structures.rebuild(
            wanted,
            [of_elements(low, part, what, node) for _, part in structures.parts(wanted) or ()],
        )
    if is_run_time(wanted) and not _is_form(wanted):
        low.fail(node, f"{what} is {describe(wanted)}", expected="a dtype, such as fe.Float32")
    if _is_form(wanted):
        return wanted
    return coercion.at_compile_time(low, node, lambda: as_dtype(wanted))


def _with_complex(form: Any) -> Any:
    """A form with two dtypes in place of each complex one."""
    if isinstance(form, DType) and form.kind == "complex":
        part: Any = form.part
        return ComplexNumber(part, part)
    found = structures.parts(form)
    return form if found is None else structures.rebuild(form, [_with_complex(x) for _, x in found])


def _is_form(value: object) -> bool:
    """Whether this is the form of a complex number."""
    return isinstance(value, ComplexNumber) and _is_dtype(value.real)


def _is_dtype(value: object) -> bool:
    return isinstance(value, DType)


def _fields(cls: type) -> tuple[str, ...]:
    """The names of the fields of a dataclass or named tuple."""
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    return getattr(cls, "_fields", ()) if issubclass(cls, tuple) else ()


def _of_class(low: Lowering, cls: type, what: str, node: ast.AST) -> Any:
    """The form of the objects of a class: its annotations are dtypes, or classes of the same
    kind."""
    annotations, items = structures.hints(cls), []
    for name in _fields(cls):
        hint = annotations.get(name)
        if not isinstance(hint, DType) and not (isinstance(hint, type) and _fields(hint)):
            low.fail(
                node,
                f"{what} is {cls.__name__}, whose field {name!r} is annotated with {hint!r}",
                expected="a dtype for each field, such as fe.Float32",
            )
        items.append(_with_complex(of_elements(low, hint, what, node)))
    if issubclass(cls, tuple):
        # The constructor of a named tuple takes its fields one by one, and may be the user's.
        return tuple.__new__(cls, items)
    return structures.fill(cls, zip(_fields(cls), items, strict=True))


def text(form: Any) -> str:
    """A form in messages: `float32`, `(float32, int32)`, `Step(z=float32, count=int32)`."""
    if isinstance(form, DType):
        return form.name
    found = list(structures.parts(form) or ())
    if isinstance(form, ComplexNumber):
        return "complex64" if str(form.real) == "Float32" else "complex128"
    if isinstance(form, Vector):
        return f"a vector of {len(found)} {text(found[0][1])}"
    if type(form) is tuple:
        comma = "," if len(found) == 1 else ""
        return f"({', '.join(text(item) for _, item in found)}{comma})"
    names = getattr(form, "_fields", None) or [suffix.lstrip(".") for suffix, _ in found]
    items = [f"{name}={text(item)}" for name, (_, item) in zip(names, found, strict=True)]
    return f"{type(form).__name__}({', '.join(items)})"


def of_value(value: Any) -> Any:
    """The form of a value of numbers."""
    return structures.mapped(lambda number: number.dtype, value)


def of_numbers(low: Lowering, value: Any, what: str, node: ast.AST) -> Any:
    """A value with a run-time number for each of its numbers.  A CompileError for other items."""

    def number(path: str, leaf: Any) -> Number:
        if isinstance(leaf, Number) or coercion.is_python_number(leaf):
            return coercion.as_number(low, leaf, node)
        low.fail(
            node,
            f"{what} takes numbers, but {'the value' if not path else path} is {describe(leaf)}",
            expected=_FORMS,
        )

    paths = iter([path for path, _ in structures.leaves(value)])
    made = structures.mapped(lambda leaf: number(next(paths), leaf), value)
    if structures.parts(made) == []:
        low.fail(node, f"{what} takes numbers, but the value has none", expected=_FORMS)
    return made


def fitted(low: Lowering, value: Any, form: Any, what: str, node: ast.AST) -> Any:
    """A value in this form: its numbers are converted as in a store.

    A CompileError for a value of another class, or with other items.
    """

    def one(leaf: Any, dtype: DType) -> Number:
        number = coercion.as_number(low, leaf, node, dtype)
        if not stores_implicitly(number.dtype, dtype):
            low.fail(
                node,
                f"{what} is {shown(value)}, and not {text(form)}",
                expected="numbers that become these without losing their kind",
                hint=f"convert it, fe.{dtype.__name__}(x)",
            )
        return coercion.convert(low, number, dtype)

    if not structures.same_form(value, form):
        low.fail(node, f"{what} is {shown(value)}, and not {text(form)}")
    return structures.mapped(one, value, form)


def shown(value: Any) -> str:
    """A value in messages, with the dtypes of its numbers."""
    if structures.parts(value) is None or isinstance(value, Vector):
        return describe(value)
    if all(isinstance(leaf, Number) for _, leaf in structures.leaves(value)):
        return text(of_value(value))
    return describe(value)


def each(
    low: Lowering, value: Any, what: str, node: ast.AST, emit: Callable[[Number], Number]
) -> Any:
    """`emit` of each number of a tuple, named tuple or dataclass of numbers."""
    return structures.mapped(emit, of_numbers(low, value, what, node))
