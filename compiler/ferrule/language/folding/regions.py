"""Runs ops of the kernel IR on constants; maths functions are expanded by `mathlib` first.

So a constant has the bits that the call would compute: both run the same steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from ferrule.language.folding import scalars
from ferrule.language.folding.scalars import Scalar
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.mathlib import expand_op
from ferrule.specs import DType
from ferrule.specs.rounding import converted

Values: TypeAlias = "dict[ops.Value, Scalar]"


class Unknown(Exception):
    """An op that cannot be run at compile time, or that must not be: a failing check."""


def constant(region: Iterable[ops.Op], result: ops.Value) -> Scalar | None:
    """The value of a constant after ops that read nothing from outside; None if it is a run-time
    value."""
    values: Values = {}
    try:
        _run(region, values)
    except Unknown:
        return None
    return values.get(result)


def _run(region: Iterable[ops.Op], values: Values) -> None:
    for op in region:
        match op:
            case ops.If():
                _branch(op, values)
            case ops.While():
                _loop(op, values)
            case ops.Check(condition):
                if not _known(values, condition):
                    raise Unknown
            case (
                ops.Constant() | ops.Unary() | ops.Binary() | ops.Fma() | ops.Compare()
                | ops.Cast() | ops.Bitcast() | ops.Select()
            ):  # fmt: skip
                _compute(op, values)
            case _:
                raise Unknown


def _known(values: Values, value: ops.Value) -> Scalar:
    if value not in values:
        raise Unknown
    return values[value]


def _compute(op: ops.Constant | ops.Arithmetic, values: Values) -> None:
    """A result; ops with `fast`, for which a target has its own instructions, are not folded."""
    dtype = op.result.type
    if not isinstance(dtype, DType) or getattr(op, "fast", False):
        raise Unknown
    expanded = expand_op(Builder(), op)
    if expanded is not None:
        _run(expanded, values)
    else:
        values[op.result] = _scalar(op, dtype, values)


def _scalar(op: ops.Constant | ops.Arithmetic, dtype: DType, values: Values) -> Scalar:
    match op:
        case ops.Constant(_, value):
            return converted(dtype, value)
        case ops.Unary(_, name, x):
            return scalars.unary(name, dtype, _known(values, x))
        case ops.Binary(_, name, x, y):
            return scalars.binary(name, dtype, _known(values, x), _known(values, y))
        case ops.Compare(_, name, x, y):
            return scalars.compare(name, _known(values, x), _known(values, y))
        case ops.Cast(_, x, saturate):
            return converted(dtype, _known(values, x), saturate=saturate)
        case ops.Bitcast(_, x) if isinstance(x.type, DType):
            return scalars.bitcast(x.type, dtype, _known(values, x))
        case ops.Select(_, condition, x, y):
            return _known(values, x if _known(values, condition) else y)
    raise Unknown


def _branch(op: ops.If, values: Values) -> None:
    side = op.then if _known(values, op.condition) else op.otherwise
    _run(side.ops, values)
    values.update({r: _known(values, y) for r, y in zip(op.results, side.yields, strict=True)})


def _loop(op: ops.While, values: Values) -> None:
    following = [_known(values, value) for value in op.initial]
    while True:
        values.update(zip(op.carried, following, strict=True))
        _run(op.test.ops, values)
        if not _known(values, op.test.yields[0]):
            break
        _run(op.body.ops, values)
        following = [_known(values, value) for value in op.body.yields]
    values.update(zip(op.results, following, strict=True))
