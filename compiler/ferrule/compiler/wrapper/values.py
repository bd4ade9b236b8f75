"""The second pass over the parameters: symbols get their values, then every value is checked.

For each parameter from left to right: sizes, strides, alignment and data of a tensor, the range of
a scalar.  Strides of dims of size 0 or 1, and all strides of a tensor without elements, are
excused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llvmlite import ir

from ferrule.compiler.messages import catalogue
from ferrule.compiler.messages.catalogue import Filling
from ferrule.compiler.messages.parts import (
    AddressOf,
    Hint,
    Message,
    OneOf,
    Part,
    SizeOf,
    StrideOf,
    Text,
    Value,
)
from ferrule.compiler.sizes import Sizes
from ferrule.compiler.wrapper.checks import Checks, Lazy
from ferrule.compiler.wrapper.decoded import DecodedTensor
from ferrule.compiler.wrapper.symbols import Place, owners
from ferrule.compiler.wrapper.tensors import TensorArgument
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I64
from ferrule.specs import Compound, Dim, Signature, Sym, Tensor, compact_strides
from ferrule.specs.expr import INT64_MAX


class Values:
    """Sizes, strides and data of a wrapper's tensors."""

    def __init__(
        self, signature: Signature, checks: Checks, tensors: Mapping[str, TensorArgument]
    ) -> None:
        self._signature = signature
        self._text = str(signature)
        self._checks = checks
        self._tensors = tensors
        self._owners = owners(signature)
        self.symbols: dict[Sym, ir.Value] = {}
        self.sizes = Sizes(checks.emitter, self.symbols)

    @property
    def _emitter(self) -> Emitter:
        return self._checks.emitter

    # ---- symbols ----

    def bind(self) -> None:
        """Read every symbol's value, from sizes first."""
        for symbol, places in self._owners.items():
            if places[0].kind == "shape":
                self.symbols[symbol] = self._tensors[places[0].parameter].size(places[0].axis)
        for symbol, places in self._owners.items():
            if places[0].kind == "strides":
                self.symbols[symbol] = self._bound_stride(places)

    def _bound_stride(self, places: Sequence[Place]) -> ir.Value:
        """The first of these strides that means something, 1 if none does."""
        value: ir.Value = self._emitter.const_i64(1)
        for place in reversed(places):
            if not _is_moot(self._spec(place), place.axis):
                stride = self._tensors[place.parameter].stride(place.axis)
                value = self._emitter.builder.select(self._is_live(place), stride, value)
        return value

    def _is_live(self, place: Place) -> ir.Value:
        tensor, build = self._tensors[place.parameter], self._emitter.builder
        one = self._emitter.const_i64(1)
        return build.and_(
            build.icmp_signed(">", tensor.size(place.axis), one), tensor.has_elements()
        )

    def _spec(self, place: Place) -> Tensor:
        return self._tensors[place.parameter].spec

    # ---- one tensor ----

    def check(self, tensor: TensorArgument) -> DecodedTensor:
        """Check all values of a tensor."""
        spec = tensor.spec
        for axis, dim in enumerate(spec.shape):
            self._check_size(tensor, Place(spec.name, tensor.position, "shape", axis), dim)
        for axis, dim in enumerate(spec.strides):
            if not _is_moot(spec, axis):
                self._check_stride(tensor, Place(spec.name, tensor.position, "strides", axis), dim)
        return DecodedTensor(spec, tensor.dl, self._check_data(tensor))

    def _where(self, place: Place) -> Mapping[str, Filling]:
        return {"argument": place.argument, "signature": self._text, "what": str(place)}

    def _check_size(self, tensor: TensorArgument, place: Place, dim: Dim) -> None:
        build, size = self._emitter.builder, tensor.size(place.axis)
        match dim:
            case Sym() if self._owners[dim][0] == place:
                self._check_bound_size(place, dim, size)
            case Sym():
                ok = build.icmp_signed("==", size, self.symbols[dim])
                self._check_match(place, dim, ok, None)
            case Compound():
                self._check_related(place, dim, size, None)
            case int():
                ok = build.icmp_signed("==", size, self._emitter.const_i64(dim))
                self._check_exact(place, dim, ok, None)

    def _check_stride(self, tensor: TensorArgument, place: Place, dim: Dim) -> None:
        build, stride = self._emitter.builder, tensor.stride(place.axis)
        excuse = self._excuse(tensor, place.axis)
        match dim:
            case Sym():
                if self._owners[dim][0].kind == "strides":
                    self._check_stride_symbol(place, dim, stride, excuse)
                if self._owners[dim][0] != place:
                    ok = build.icmp_signed("==", stride, self.symbols[dim])
                    self._check_match(place, dim, ok, excuse)
            case Compound():
                self._check_related(place, dim, stride, excuse)
            case int():
                ok = build.icmp_signed("==", stride, self._emitter.const_i64(dim))
                self._check_exact(place, dim, ok, excuse)

    def _excuse(self, tensor: TensorArgument, axis: int) -> Lazy | None:
        if all(isinstance(dim, int) for dim in tensor.spec.shape):
            return None  # sizes are known to be above 1 here
        return lambda: tensor.is_moot(axis)

    def _check_bound_size(self, place: Place, symbol: Sym, size: ir.Value) -> None:
        """The size that a symbol binds at: its range and its divisibility."""
        high = (1 << (symbol.width - 1)) - 1
        ok = self._emitter.builder.icmp_unsigned("<=", size, self._emitter.const_i64(high))
        self._check_bounds(place, f"int{symbol.width}", (0, high), ok, None)
        self._check_divisible(place, symbol, size, None)
        self.sizes.ranges[symbol] = (0, high)

    def _check_stride_symbol(
        self, place: Place, symbol: Sym, stride: ir.Value, excuse: Lazy | None
    ) -> None:
        build = self._emitter.builder
        if symbol.width == 32:
            half = 1 << 31
            moved = build.add(stride, self._emitter.const_i64(half))
            ok = build.icmp_unsigned("<", moved, self._emitter.const_i64(1 << 32))
            self._check_bounds(place, "int32", (-half, half - 1), ok, excuse)
        self._check_divisible(place, symbol, stride, excuse)

    def _check_divisible(
        self, place: Place, symbol: Sym, value: ir.Value, excuse: Lazy | None
    ) -> None:
        build, by = self._emitter.builder, symbol.divisibility
        if by == 1:
            return
        if by & (by - 1):
            rest = build.srem(value, self._emitter.const_i64(by))
        else:
            rest = build.and_(value, self._emitter.const_i64(by - 1))
        message = catalogue.DIVISIBLE.fill(self._where(place), expected=by, actual=_actual(place))
        self._check_zero(rest, message, excuse)

    def _check_zero(self, rest: ir.Value, message: Message, excuse: Lazy | None) -> None:
        ok = self._emitter.builder.icmp_signed("==", rest, self._emitter.const_i64(0))
        self._checks.check(ok, message, excuse=excuse)

    def _check_related(
        self, place: Place, dim: Compound, value: ir.Value, excuse: Lazy | None
    ) -> None:
        """A size or stride against the value of its expression."""
        size, build = self.sizes.lower(dim), self._emitter.builder
        formula = self._signature.format(dim)
        if size.undefined is not None:
            message = catalogue.UNDEFINED.fill(
                self._where(place), formula=formula, actual=_actual(place)
            )
            self._checks.check(build.not_(size.undefined), message, excuse=excuse)
        message = catalogue.RELATED.fill(
            self._where(place),
            formula=formula,
            expected=Value(0),
            actual=_actual(place),
            hint=self._hint(place),
        )
        ok = build.icmp_signed("==", value, size.value)
        self._checks.check(ok, message, excuse=excuse, shown=[lambda: size.value])
        if place.kind == "shape" and size.low < 0:
            ok = build.icmp_signed(">=", value, self._emitter.const_i64(0))
            self._check_bounds(place, "int64", (0, INT64_MAX), ok, None)

    # ---- the checks themselves ----

    def _check_exact(self, place: Place, dim: int, ok: ir.Value, excuse: Lazy | None) -> None:
        message = catalogue.EXACT.fill(
            self._where(place), expected=dim, actual=_actual(place), hint=self._hint(place)
        )
        self._checks.check(ok, message, excuse=excuse)

    def _check_match(self, place: Place, symbol: Sym, ok: ir.Value, excuse: Lazy | None) -> None:
        known = self._owners[symbol]
        earlier = known[: known.index(place)] if place in known else known
        owner: str | Part = str(earlier[0])
        expected: Part = _actual(earlier[0])
        shown: list[Lazy] = []
        if len(earlier) > 1:  # which of them bound the symbol is known only at the call
            owner = OneOf(0, tuple(Text(str(each)) for each in earlier))
            expected = Value(1)
            shown = [lambda: self._first_live(earlier), lambda: self.symbols[symbol]]
        message = catalogue.MATCH.fill(
            self._where(place),
            owner=owner,
            expected=expected,
            actual=_actual(place),
            hint=self._hint(place),
        )
        self._checks.check(ok, message, excuse=excuse, shown=shown)

    def _first_live(self, places: Sequence[Place]) -> ir.Value:
        """The position of the first of these strides that means something, for a cold block."""
        found: ir.Value = self._emitter.const_i64(len(places) - 1)
        for i, place in reversed(list(enumerate(places[:-1]))):
            moot = self._tensors[place.parameter].is_moot(place.axis)
            found = self._emitter.builder.select(moot, found, self._emitter.const_i64(i))
        return found

    def _check_bounds(
        self,
        place: Place,
        kind: str,
        bounds: tuple[int, int],
        ok: ir.Value,
        excuse: Lazy | None,
    ) -> None:
        message = catalogue.BOUNDS.fill(
            self._where(place), range=kind, low=bounds[0], high=bounds[1], actual=_actual(place)
        )
        self._checks.check(ok, message, excuse=excuse)

    def _hint(self, place: Place) -> tuple[Part, ...]:
        """Words for the commonest mistake: a tensor in the other of the two usual orders."""
        spec = self._spec(place)
        columns_first = tuple(range(len(spec.shape)))
        rows_first = tuple(reversed(columns_first))
        is_row_major = spec.strides == compact_strides(spec.shape, rows_first)
        is_column_major = spec.strides == compact_strides(spec.shape, columns_first)
        if place.kind == "shape" or is_row_major == is_column_major:
            return ()
        wanted = "row-major" if is_row_major else "column-major"
        order = columns_first if is_row_major else rows_first
        actual = "column-major" if is_row_major else "row-major"
        text = (
            f"; hint: the parameter is {wanted} and this tensor looks {actual}, "
            f"which an example with stride_order={order} stands for"
        )
        if is_row_major:
            return (Hint(place.argument, "column-major", Text(text)),)
        return (Hint(place.argument, "row-major", Text(text)),)

    # ---- data ----

    def _check_data(self, tensor: TensorArgument) -> ir.Value:
        """Alignment, and an address where there are elements; the first element's address."""
        build, spec = self._emitter.builder, tensor.spec
        base = tensor.base()
        address = tensor.address(base)
        where: Mapping[str, Filling] = {
            "argument": tensor.position,
            "signature": self._text,
        }
        if spec.align > 1:
            bits = build.ptrtoint(address, I64)
            rest = build.and_(bits, self._emitter.const_i64(spec.align - 1))
            actual = AddressOf(tensor.position)
            message = catalogue.ALIGNMENT.fill(where, expected=spec.align, actual=actual)
            self._check_zero(rest, message, None)
        if 0 not in spec.shape:
            given = build.icmp_unsigned("!=", base, self._emitter.null())
            excuse = self._excuse(tensor, -1)
            self._checks.check(given, catalogue.NULL_DATA.fill(where), excuse=excuse)
        return address


def _is_moot(spec: Tensor, axis: int) -> bool:
    """Whether this stride can mean nothing at any call."""
    return 0 in spec.shape or spec.shape[axis] == 1


def _actual(place: Place) -> SizeOf | StrideOf:
    match place.kind:
        case "shape":
            return SizeOf(place.argument, place.axis)
        case "strides":
            return StrideOf(place.argument, place.axis)
