"""Facts about a call of a compiled function that the types of the arguments prove."""

from __future__ import annotations

import ast
from dataclasses import field
from typing import Any, NoReturn

from ferrule.language.ir import ops
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe, usage_hint
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.objects import foreign_calls
from ferrule.language.values import Handle, Number, TensorView
from ferrule.specs import (
    Boolean,
    Dim,
    DType,
    Int64,
    Signature,
    Sym,
    divisibility_of,
    params,
)
from ferrule.specs.copies import changed, substitute
from ferrule.specs.deferred import dataclass
from ferrule.specs.intervals import Interval, interval, is_bounded


class Unproved(Exception):
    """The types of the arguments do not prove everything: a check is left."""


@dataclass(slots=True)
class Proof:
    """The facts that the types of arguments prove about a call of a compiled function.

    `dims` are the sizes of its symbols; `written` the positions of leaves that are tensors which it
    writes.  Methods raise Unproved if a check is left, and a CompileError if the check is known to
    fail.
    """

    low: Lowering
    signature: Signature
    node: ast.Call
    dims: dict[Sym, Dim] = field(default_factory=dict)
    written: list[int] = field(default_factory=list)
    _count: int = 0

    def refuse(self, param: params.Param, value: Any) -> NoReturn:
        """Raise the error for an argument that is known to be wrong."""
        self.low.fail(
            self.node,
            f"the argument {param.name!r} of {self.signature.name} is {describe(value)}",
            expected=self.signature.describe(param),
            hint=usage_hint(value),
        )

    def _refuse_tensor(self, param: params.Param, value: Any) -> NoReturn:
        """Raise the error for a tensor of another rank or dtype."""
        rank, dtype = len(value.type.shape), value.type.dtype
        self.low.fail(
            self.node,
            f"the argument {param.name!r} of {self.signature.name} is {describe(value)} of "
            f"{rank} {'dim' if rank == 1 else 'dims'} and {dtype.name}",
            expected=self.signature.describe(param),
        )

    # ---- symbols ----

    def bind(self, param: params.Param, value: Any) -> None:
        """Bind symbols that occur as whole sizes in a tensor of this parameter."""
        value = coercion.plain(value)
        match param:
            case params.Tensor(shape=shape, strides=strides) if _is_tensor(value):
                type_ = value.type
                if len(type_.shape) != len(shape) or type_.dtype is not param.dtype:
                    self._refuse_tensor(param, value)
                for wanted, dim in zip(shape, type_.shape, strict=True):
                    self._bind_dim(wanted, dim, is_signed=False)
                for wanted, dim in zip(strides, type_.strides, strict=True):
                    self._bind_dim(wanted, dim, is_signed=True)
            case params.Tensor() if isinstance(value, (Number, bool, int, float, str, bytes)):
                self.refuse(param, value)
            case params.Tuple(items=items) if isinstance(value, tuple) and len(value) == len(items):
                for item, each in zip(items, value, strict=True):
                    self.bind(item, each)

    def _bind_dim(self, wanted: Dim, dim: Dim, *, is_signed: bool) -> None:
        if not isinstance(wanted, Sym) or wanted in self.dims:
            return
        least, largest = wanted.interval(signed=is_signed)
        low, high = _interval(dim)
        if not is_signed:
            low = max(low, 0)
        fits = (wanted.width == 64 and not wanted.bounds) or (least <= low and high <= largest)
        if not fits or divisibility_of(dim) % wanted.divisibility:
            raise Unproved
        self.dims[wanted] = dim

    # ---- leaves ----

    def leaves(self, param: params.Param, value: Any) -> list[ops.Value]:
        """The values of a parameter as arguments of the body."""
        found = self._leaves(param, coercion.plain(value))
        if not isinstance(param, params.Tuple):
            if isinstance(param, params.Tensor) and not param.read_only:
                self.written.append(self._count)
            self._count += len(found)
        return found

    def _leaves(self, param: params.Param, value: Any) -> list[ops.Value]:
        match param:
            case params.Tensor():
                return [self._tensor(param, value)]
            case params.Scalar(dtype=dtype):
                return [self._scalar(param, dtype, value)]
            case params.NoneValue():
                if value is not None:
                    self.refuse(param, value)
                return []
            case params.Constant(value=wanted) if type(value) is type(wanted) and value == wanted:
                return []
            case params.Tuple(items=items):
                if not isinstance(value, tuple) or len(value) != len(items):
                    self.refuse(param, value)
                pairs = zip(items, value, strict=True)
                return [leaf for item, each in pairs for leaf in self.leaves(item, each)]
            case params.String() | params.Bytes():
                return self._text(param, value)
            case params.DataType() if isinstance(value, DType):
                return [foreign_calls.dtype_bits(self.low, value)]
            case _:
                return self._handle(param, value)

    def _tensor(self, param: params.Tensor, value: Any) -> ops.Value:
        if not _is_tensor(value):
            self.refuse(param, value)
        type_ = value.type
        dims = (*param.shape, *param.strides)
        known = tuple(substitute(dim, self.dims) for dim in dims)
        same = known == (*type_.shape, *type_.strides)
        special = param.packed or param.owning or param.device_id is not None
        if not same or special or type_.align < param.align or value.nested is not None:
            raise Unproved
        found: ops.Value = value.value
        return found

    def _scalar(self, param: params.Param, dtype: DType, value: Any) -> ops.Value:
        if coercion.is_python_number(value):
            return self._constant(param, dtype, value)
        if not isinstance(value, Number):
            self.refuse(param, value)
        if value.dtype is dtype:
            return value.value
        is_float = value.dtype.kind == "float"
        if is_float and dtype.kind != "float":
            self.refuse(param, value)
        wider = dtype.kind == value.dtype.kind and dtype.bits >= value.dtype.bits
        if not (is_float or (wider and dtype is not Boolean)):
            raise Unproved
        return coercion.convert(self.low, value, dtype).value

    def _constant(self, param: params.Param, dtype: DType, value: Any) -> ops.Value:
        fits = {"float": (int, float, bool), "bool": (bool,)}.get(dtype.kind, (int, bool))
        if not isinstance(value, fits):
            self.refuse(param, value)
        if dtype.is_integer and not dtype.range[0] <= value <= dtype.range[1]:
            self.refuse(param, value)
        typed = coercion.at_compile_time(self.low, self.node, lambda: dtype(value))
        return coercion.as_number(self.low, typed, self.node, dtype).value

    def _text(self, param: params.Param, value: Any) -> list[ops.Value]:
        kind = str if isinstance(param, params.String) else bytes
        if isinstance(value, kind):
            return foreign_calls.text_leaves(self.low, value)
        if isinstance(value, Handle) and type(value.param) is type(param):
            return list(value.leaves)
        self.refuse(param, value)

    def _handle(self, param: params.Param, value: Any) -> list[ops.Value]:
        """A handle that is only passed on, with an equal spec."""
        match value:
            case Handle(param=given):
                plain = changed(param, name=given.name, default=given.default)
                if plain != given:
                    raise Unproved
                return list(value.leaves)
        raise Unproved


def _is_tensor(value: Any) -> bool:
    return isinstance(value, TensorView) and not value.type.is_own


def _interval(dim: Dim) -> Interval:
    """The values of a size as far as they are known: of an expression by bounds alone."""
    return interval(dim) if isinstance(dim, int | Sym) or is_bounded(dim) else Int64.range
