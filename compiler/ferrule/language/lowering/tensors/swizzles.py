"""Indices into swizzled memory: what a thread computes, and what is known while compiling.

A beginning is a run-time number plus a known one.  The bits that the run-time number may have set
are followed from the coordinates on, because a swizzle is linear over xor: where a known number has
no bit in common with the run-time one, swizzle(n + k) is swizzle(n) ^ swizzle(k), and where these
two have none either it is their sum.  So the elements that a thread reads of a tile lie at a few
computed addresses plus constants.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.language.layouts import Layout, Swizzle, crd2idx, size
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.tensors.coordinates import Emitted
from ferrule.language.values import Begin, Number, SwizzledPointer, SwizzledView
from ferrule.specs import AddressSpace, DType, Int32, Int64
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import INT64_MAX

Swizzled = SwizzledView | SwizzledPointer


@dataclass(frozen=True, slots=True)
class Masked(Emitted):
    """Arithmetic that notes which bits of its results may be set, by their value: -1 is any."""

    masks: dict[ops.Value, int]

    def mul(self, lhs: Any, rhs: Any) -> Any:
        """`lhs * rhs`, in the type of the left side: memory that a block shares is small."""
        return self._emit("mul", lhs, rhs)

    def floordiv(self, lhs: Any, rhs: Any) -> Any:
        """`lhs // rhs`."""
        return self._noted(Emitted.floordiv(self, lhs, rhs), _divided(self.mask(lhs), rhs))

    def mod(self, lhs: Any, rhs: Any) -> Any:
        """`lhs % rhs`."""
        return self._noted(Emitted.mod(self, lhs, rhs), _rest(self.mask(lhs), rhs))

    def mask(self, value: Any) -> int:
        """The bits that a number may have set."""
        if isinstance(value, int):
            return value
        return self.masks.get(value.value, -1) if isinstance(value, Number) else -1

    def _noted(self, result: Any, mask: int) -> Any:
        if isinstance(result, Number):
            self.masks[result.value] = mask
        return result


def _divided(mask: int, by: Any) -> int:
    if not isinstance(by, int) or by < 1 or mask < 0:
        return -1
    return mask >> (by.bit_length() - 1) if by & (by - 1) == 0 else _up_to(mask // by)


def _rest(mask: int, by: Any) -> int:
    if not isinstance(by, int) or by < 1:
        return -1
    return mask & (by - 1) if by & (by - 1) == 0 else _up_to(by - 1)


def _up_to(largest: int) -> int:
    """The bits of all numbers up to this one."""
    return (1 << largest.bit_length()) - 1


def _lowest(mask: int) -> int:
    return mask & -mask


def _times(mask: int, stride: int) -> int:
    """The bits of a number times a stride."""
    if mask == 0 or stride == 0:
        return 0
    if stride > 0 and stride & (stride - 1) == 0:
        return mask * stride
    step = _lowest(mask) * _lowest(stride)
    return -step if mask < 0 or stride < 0 else _up_to(mask * stride) & -step


def _sum(left: int, right: int) -> int:
    """The bits of a sum."""
    if left & right == 0:
        return left | right
    step = min(_lowest(left), _lowest(right))
    return -step if left < 0 or right < 0 else _up_to(left + right) & -step


def index_dtype(type_: TensorType) -> DType:
    """The dtype of indices into this memory."""
    small = type_.space in (AddressSpace.smem, AddressSpace.rmem)
    return Int32 if small else Int64


def arithmetic(low: Lowering, node: ast.AST) -> Masked:
    """Arithmetic on coordinates of swizzled tensors."""
    return Masked(low, node, low.state.masks)


def moved(
    low: Lowering, begin: Begin, found: tuple[Any, ...], layout: Layout, of: Any, node: ast.AST
) -> Begin:
    """A beginning moved to the element at these coordinates of the leaves of a layout."""
    from ferrule.language.layouts.layout import flat_modes

    emit, dtype = arithmetic(low, node), index_dtype(of.type)
    known, number, bits = begin.known, begin.number, begin.bits
    for at, (_, stride) in zip(found, flat_modes(layout), strict=True):
        if stride == 0 or (isinstance(at, int) and isinstance(stride, int)):
            known += 0 if stride == 0 else at * stride
            continue
        wide = at if isinstance(at, int) else coercion.convert(low, at, dtype)
        step = emit.mul(wide, stride)
        if isinstance(step, int):
            known += step
            continue
        step = coercion.convert(low, step, dtype)
        more = _times(emit.mask(at), stride) if isinstance(stride, int) else -1
        number = step if number is None else emit.add(number, step)
        bits = _sum(bits, more)
    return Begin(known, number, bits)


@dataclass(frozen=True, slots=True)
class Address:
    """A known number of elements from a run-time one on; `step` is known to divide the latter."""

    known: int
    number: Number | None = None
    step: int = 0


class Indices:
    """The indices of elements of a swizzled tensor in its memory, each computed once."""

    def __init__(self, low: Lowering, of: Swizzled, node: ast.AST) -> None:
        self.low, self.of, self.node = low, of, node
        self.done: dict[Any, Number] = {}
        self.views: dict[Any, ops.Value] = {}

    def address(self, element: int) -> Address:
        """The place of an element whose number in the layout is known."""
        begin, inner = self.of.begin, self.of.inner
        known = begin.known + element
        if begin.number is None and (isinstance(inner, Layout) or known >= 0):
            return Address(inner(known))
        if begin.number is None:
            text = f"element {element} of {self.of.name} is at the index {known}"
            self.low.fail(self.node, text, expected="an index from 0 on, which can be swizzled")
        if not isinstance(inner, Swizzle):
            self._refuse(inner)
        low_part = known % inner.span
        high = known - low_part
        mask = begin.bits
        if low_part & mask:
            number = self._added(begin.number, low_part)
            step = _lowest(_sum(mask, low_part))
            return Address(high, self._swizzled(number, inner, low_part), self._step(step, inner))
        changed = inner(low_part)
        reach = mask | inner.shifted(mask & inner.source)
        crossed, beside = changed & reach, changed & ~reach
        number = self._swizzled(begin.number, inner, 0)
        if crossed:
            number = self._crossed(number, crossed)
        return Address(high + beside, number, _lowest(reach | crossed))

    def _refuse(self, inner: Any) -> None:
        self.low.fail(
            self.node,
            f"{self.of.name} is {inner} of indices that are known only at the call",
            expected="a swizzle as the inner layout, or coordinates known at compile time",
        )

    def _step(self, step: int, inner: Swizzle) -> int:
        return min(step, 1 << inner.num_base) if inner.num_bits else step

    def _swizzled(self, number: Number, inner: Swizzle, key: Any) -> Number:
        if ("swizzled", key) not in self.done:
            self.done["swizzled", key] = self._emit(number, inner)
        return self.done["swizzled", key]

    def _emit(self, number: Number, inner: Swizzle) -> Number:
        """n ^ ((n & source) shifted to the bits that change)."""
        if not inner.num_bits:
            return number
        build, dtype = self.low.builder, number.dtype
        taken = build.binary("and", number.value, build.constant(dtype, inner.source))
        way: ops.BinaryOp = "shr" if inner.num_shift >= 0 else "shl"
        by = abs(inner.num_shift)
        moved_bits = build.binary(way, taken, build.constant(dtype, by)) if by else taken
        return Number(build.binary("xor", number.value, moved_bits))

    def _crossed(self, number: Number, bits: int) -> Number:
        if ("crossed", bits) not in self.done:
            build = self.low.builder
            constant = build.constant(number.dtype, bits)
            self.done["crossed", bits] = Number(build.binary("xor", number.value, constant))
        return self.done["crossed", bits]

    def _added(self, number: Number, known: int) -> Number:
        if ("added", known) not in self.done:
            build = self.low.builder
            constant = build.constant(number.dtype, known)
            self.done["added", known] = Number(build.binary("add", number.value, constant))
        return self.done["added", known]

    def memory(self, address: Address) -> tuple[ops.Value, int]:
        """A view of the memory, and the known index of the element in it."""
        if address.number is None:
            return self.of.root, address.known
        key = address.number.value
        if key not in self.views:
            type_ = self.of.type
            align = _common(type_.align, address.step * type_.dtype.itemsize)
            view = TensorType(type_.dtype, (INT64_MAX,), (1,), align, type_.space)
            self.views[key] = self.low.builder.view(self.of.root, view, (key,))
            self.low.state.bases[self.views[key]] = self.low.state.bases.get(
                self.of.root, self.of.root
            )
        return self.views[key], address.known


def _common(align: int, step: int) -> int:
    return min(align, _lowest(step)) if step else align


def places(
    low: Lowering, of: SwizzledView, node: ast.AST
) -> Iterator[tuple[ops.Value, tuple[ops.Value, ...]]]:
    """Memory and index of every element of a tensor, the first mode fastest."""
    indices, known = Indices(low, of, node), dict[int, ops.Value]()
    for number in range(size(of.layout)):
        view, at = indices.memory(indices.address(crd2idx(number, of.layout)))
        if at not in known:
            known[at] = constant_index(low, at)
        yield view, (known[at],)


def constant_index(low: Lowering, known: int) -> ops.Value:
    """An index that is known, as a value."""
    wide = not -(1 << 31) <= known < 1 << 31
    return low.builder.constant(Int64 if wide else Int32, known)
