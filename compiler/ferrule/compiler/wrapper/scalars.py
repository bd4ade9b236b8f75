"""Scalar parameters: which values they take, and what becomes of them.

Integers take ints and bools, floats also floats, a bool takes bools and the ints 0 and 1; nothing
else converts.
"""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir

from ferrule.compiler.messages import catalogue
from ferrule.compiler.messages.catalogue import Filling
from ferrule.compiler.messages.parts import IntOf, TypeOf
from ferrule.compiler.wrapper.checks import Checks
from ferrule.compiler.wrapper.decoded import DecodedScalar
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import ANY, F32, F64, I8
from ferrule.specs import DType, Scalar


class ScalarArgument:
    """Decodes one scalar parameter."""

    def __init__(
        self, signature: str, checks: Checks, position: int, spec: Scalar, at: ir.Value
    ) -> None:
        if spec.dtype.kind == "float" and spec.dtype.bits < 32:
            raise NotImplementedError(
                f"the scalar parameter {spec.name} is {spec.dtype.name}; "
                f"float32 and float64 are the floats that a scalar can be so far"
            )
        self.spec = spec
        self._checks = checks
        self._at = at
        self._place: Mapping[str, Filling] = {"argument": position, "signature": signature}
        self._position = position

    @property
    def _emitter(self) -> Emitter:
        return self._checks.emitter

    def check_kind(self) -> None:
        """Refuse what is no number of the right kind."""
        build = self._emitter.builder
        index = self._emitter.load_field(self._at, ANY, "type_index")
        above = build.sub(index, self._emitter.const_i32(int(TypeIndex.INT)))
        # INT, BOOL and FLOAT are neighbours.
        last = TypeIndex.FLOAT if self.spec.dtype.kind == "float" else TypeIndex.BOOL
        ok = build.icmp_unsigned("<=", above, self._emitter.const_i32(int(last - TypeIndex.INT)))
        expected = "int" if self.spec.dtype.is_integer else self.spec.dtype.kind
        actual = TypeOf(self._position)
        message = catalogue.TYPE.fill(self._place, expected=expected, actual=actual)
        self._checks.check(ok, message)

    def check_value(self) -> DecodedScalar:
        """Refuse what does not fit; the value in its own type."""
        match self.spec.dtype.kind:
            case "bool":
                return DecodedScalar(self.spec, self._bool())
            case "float":
                return DecodedScalar(self.spec, self._float())
            case _:
                return DecodedScalar(self.spec, self._int(self.spec.dtype))

    def _bool(self) -> ir.Value:
        build = self._emitter.builder
        value = self._emitter.load_field(self._at, ANY, "v_int64")
        ok = build.icmp_unsigned("<=", value, self._emitter.const_i64(1))
        actual = IntOf(self._position)
        self._checks.check(ok, catalogue.BOOLEAN.fill(self._place, actual=actual))
        return build.trunc(value, I8)

    def _float(self) -> ir.Value:
        build = self._emitter.builder
        index = self._emitter.load_field(self._at, ANY, "type_index")
        is_float = build.icmp_signed("==", index, self._emitter.const_i32(int(TypeIndex.FLOAT)))
        whole = build.sitofp(self._emitter.load_field(self._at, ANY, "v_int64"), F64)
        exact = self._emitter.load_field(self._at, ANY, "v_float64")
        value = build.select(is_float, exact, whole)
        return build.fptrunc(value, F32) if self.spec.dtype.bits == 32 else value

    def _int(self, dtype: DType) -> ir.Value:
        build = self._emitter.builder
        value = self._emitter.load_field(self._at, ANY, "v_int64")
        ok = self._fits(dtype, value)
        if ok is not None:
            low, high = dtype.range
            message = catalogue.BOUNDS.fill(
                self._place,
                what="value",
                range=dtype.name,
                low=low,
                high=high,
                actual=IntOf(self._position),
            )
            self._checks.check(ok, message)
        return value if dtype.bits == 64 else build.trunc(value, ir.IntType(dtype.bits))

    def _fits(self, dtype: DType, value: ir.Value) -> ir.Value | None:
        """Whether the value is in range.  An int64 cannot hold the upper half of uint64."""
        build = self._emitter.builder
        match dtype.kind, dtype.bits:
            case "int", 64:
                return None
            case "int", bits:
                moved = build.add(value, self._emitter.const_i64(1 << (bits - 1)))
                return build.icmp_unsigned("<", moved, self._emitter.const_i64(1 << bits))
            case _, bits:
                high = self._emitter.const_i64((1 << min(bits, 63)) - 1)
                return build.icmp_unsigned("<=", value, high)
