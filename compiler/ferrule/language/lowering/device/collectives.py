"""What reductions and scans, which are written in the language itself, ask of their values."""

from __future__ import annotations

import ast
from typing import Any, Final

from ferrule.language.faces import collectives as faces
from ferrule.language.lowering import structures
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.device.threads import require_kernel
from ferrule.language.lowering.numbers import coercion, forms
from ferrule.language.values import Number
from ferrule.specs import Boolean, Int32, Numeric


def _numbers(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    value, name = bound(low, "val name", args, kwargs, node)
    require_kernel(low, name, node)
    return forms.of_numbers(low, value, name, node)


def _form(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    (value,) = bound(low, "val", args, kwargs, node)
    return forms.of_value(value)


def _result(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """A result of `op`, which is a value of `op` again: nothing is converted but constants."""
    value, like = bound(low, "result like", args, kwargs, node)
    form = forms.of_value(like)

    def one(leaf: Any, dtype: Any) -> Number:
        if not isinstance(coercion.plain(leaf), (Number, Numeric, int, float)):
            _refuse(low, value, form, node)
        number = coercion.as_number(low, leaf, node, dtype)
        is_count = dtype is Boolean and number.dtype is Int32  # a sum of Booleans is one
        if number.dtype is not dtype and not is_count:
            _refuse(low, value, form, node)
        return number

    if not structures.same_form(value, form):
        _refuse(low, value, form, node)
    return structures.mapped(one, value, form)


def _refuse(low: Lowering, value: Any, form: Any, node: ast.AST) -> None:
    several = structures.parts(form) is not None
    low.fail(
        node,
        f"op gives {forms.shown(value)} for two values of {forms.text(form)}",
        expected="a value of the same kind, which is combined again",
        hint="give the numbers one by one, such as lambda x, y: (x[0] + y[0], max(x[1], y[1]))"
        if several
        else "convert the result in op, or the values before",
    )


def _initial(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    value, like = bound(low, "initial like", args, kwargs, node)
    return forms.fitted(low, value, forms.of_value(like), "initial", node)


def _for_cpu(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> bool:
    return low.state.target == "cpu"


TABLE: Final[dict[Any, Intrinsic]] = {
    faces.numbers_of: _numbers,
    faces.form_of: _form,
    faces.result_like: _result,
    faces.initial_like: _initial,
    faces.for_cpu: _for_cpu,
}
"""The emitters of these functions."""
