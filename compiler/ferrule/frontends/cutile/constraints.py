"""cuTile's constraints as specs, and the arguments that kernels take for them.

The rules are those of the calling conventions `cutile_python_v1` and `_v2` in cuTile's
documentation: a number is one argument; an array is its address, then its sizes and strides in
elements, of the constraint's index dtype, including constant ones; a constant is no argument; a
tuple is its items.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ferrule.compiler.conventions.arguments import Argument, cast
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.examples import SeenSizes, spec_of
from ferrule.frontends.told import plain
from ferrule.specs import Dim, DType, Param, as_dtype, divisibility_of, sym_int
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import Constant, Scalar, Tensor, Tuple


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kernel: cuTile's constraint, and the spec, which is None for a constant."""

    constraint: Any
    spec: Param | None


@dataclass(frozen=True, slots=True)
class Array:
    """An array among the parameters, possibly nested in tuples."""

    tensor: Tensor
    constraint: Any


def parameter(cutile: Any, name: str, given: Any, sizes: SeenSizes) -> Parameter:
    """The parameter for a constraint of cuTile, an example, the value of a constant, or a tuple of
    these.

    `sizes` are those of all real tensors among the parameters.  Raises CompileError for a value
    that no constraint of cuTile or no argument of a call can express.
    """
    c = cutile.compilation
    known = (c.ScalarConstraint, c.ArrayConstraint, c.ListConstraint, c.TupleConstraint)
    if isinstance(given, (*known, c.ConstantConstraint)):
        return Parameter(given, spec_of_constraint(cutile, name, given))
    if isinstance(given, np.generic):
        given = given.item()
    given = plain(given)
    if isinstance(given, (bool, int, float)):
        return Parameter(c.ConstantConstraint(given), None)
    if isinstance(given, (tuple, list)):
        items = [parameter(cutile, str(i), each, sizes) for i, each in enumerate(given)]
        constraint = c.TupleConstraint(tuple(each.constraint for each in items))
        return Parameter(constraint, _tuple(name, items))
    spec = spec_of(name, given, sizes=sizes)
    return Parameter(_constraint(cutile, spec), spec)


def _tuple(name: str, items: Sequence[Parameter]) -> Tuple:
    """A tuple of parameters; its constants become arguments that must equal them."""
    specs = [
        Constant(str(i), each.constraint.value) if each.spec is None else each.spec
        for i, each in enumerate(items)
    ]
    return Tuple(name, tuple(specs))


def spec_of_constraint(cutile: Any, name: str, constraint: Any) -> Param | None:
    """The spec of the values that a constraint allows; None for a constant."""
    c = cutile.compilation
    match constraint:
        case c.ConstantConstraint():
            return None
        case c.ScalarConstraint(dtype=dtype):
            return Scalar(name, _dtype(name, dtype))
        case c.ArrayConstraint():
            return _tensor(cutile, name, constraint)
        case c.TupleConstraint(items=items):
            specs = (spec_of_constraint(cutile, str(i), each) for i, each in enumerate(items))
            return _tuple(name, [Parameter(*each) for each in zip(items, specs, strict=True)])
    raise CompileError(
        Diagnostic(
            f"the parameter {name!r} has a {type(constraint).__name__}",
            expected="arrays, numbers, constants and tuples of these",
        )
    )


def _tensor(cutile: Any, name: str, array: Any) -> Tensor:
    width = 64 if array.index_dtype == cutile.int64 else 32
    if array.index_dtype not in (cutile.int32, cutile.int64):
        raise CompileError(
            f"the array {name!r} has sizes of {array.index_dtype}, not int32 or int64"
        )
    shape = _dims(width, array.shape_constant, array.shape_divisible_by)
    strides = _dims(width, array.stride_constant, array.stride_divisible_by)
    dtype, align = _dtype(name, array.dtype), array.base_addr_divisible_by
    if align & (align - 1):
        raise CompileError(
            Diagnostic(
                f"the address of {name!r} is to be divisible by {align}",
                expected="base_addr_divisible_by that is a power of two",
            )
        )
    return Tensor(name, shape, dtype, strides=strides, align=max(align, dtype.itemsize))


def _dims(width: int, constants: Sequence[int | None], divisors: Sequence[int]) -> list[Dim]:
    return [
        sym_int(width, divisibility=divisor) if constant is None else constant
        for constant, divisor in zip(constants, divisors, strict=True)
    ]


def _dtype(name: str, dtype: Any) -> DType:
    try:
        return as_dtype(str(dtype.name).removesuffix("_"))
    except (TypeError, ValueError):
        raise CompileError(
            f"the parameter {name!r} is of {dtype.name}, which no tensor of a call has"
        ) from None


def _constraint(cutile: Any, spec: Param) -> Any:
    """The constraint with the same meaning as a spec."""
    c = cutile.compilation
    match spec:
        case Scalar(name=name, dtype=dtype):
            return c.ScalarConstraint(_cutile_dtype(cutile, name, dtype))
        case Tensor():
            return _array_constraint(cutile, spec)
        case Tuple(items=items):
            return c.TupleConstraint(tuple(_constraint(cutile, item) for item in items))
        case Constant(value=value):
            return c.ConstantConstraint(value)
    raise CompileError(
        Diagnostic(
            f"the parameter {spec.name!r} is a {type(spec).__name__}, which cuTile does not have",
            expected="tensors, numbers, constants and tuples of these",
        )
    )


def _array_constraint(cutile: Any, tensor: Tensor) -> Any:
    """The constraint of an array without aliases, whose sizes fit 32 bits and whose strides are not
    negative."""
    return cutile.compilation.ArrayConstraint(
        _cutile_dtype(cutile, tensor.name, tensor.dtype),
        len(tensor.shape),
        index_dtype=cutile.int32,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=False,
        stride_constant=[_constant(stride) for stride in tensor.strides],
        shape_constant=[_constant(size) for size in tensor.shape],
        stride_divisible_by=[max(1, divisibility_of(each)) for each in tensor.strides],
        shape_divisible_by=[max(1, divisibility_of(each)) for each in tensor.shape],
        base_addr_divisible_by=tensor.align,
    )


def _constant(dim: Dim) -> int | None:
    return dim if isinstance(dim, int) else None


def _cutile_dtype(cutile: Any, name: str, dtype: DType) -> Any:
    found = getattr(cutile, "bool_" if dtype.kind == "bool" else dtype.name, None)
    if found is None:
        raise CompileError(f"the parameter {name!r} is of {dtype.name}, which cuTile does not have")
    return found


def handed(cutile: Any, spec: Param | None, constraint: Any) -> Iterator[Argument]:
    """The arguments that a kernel takes for a parameter."""
    match spec:
        case Tensor():
            index = "int64" if constraint.index_dtype == cutile.int64 else "int32"
            yield spec.data
            for dim in (*spec.shape, *spec.strides):
                yield cast(dim, index)
        case Tuple(items=items):
            for item, inner in zip(items, constraint.items, strict=True):
                yield from handed(cutile, item, inner)
        case Scalar():
            yield spec


def arrays(spec: Param | None, constraint: Any) -> Iterator[Array]:
    """The arrays in a parameter."""
    match spec:
        case Tensor():
            yield Array(spec, constraint)
        case Tuple(items=items):
            for item, inner in zip(items, constraint.items, strict=True):
                yield from arrays(item, inner)
