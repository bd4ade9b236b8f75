"""`fe.gemm` by the operations of a warpgroup: A and B in shared memory, sums in registers.

The hardware knows a few arrangements of a matrix in shared memory; which one a tile has is found by
comparing all of its elements.  A product runs in the background, so its sums stay where they are.
"""

from __future__ import annotations

import ast
from typing import Any

from ferrule.language import layouts
from ferrule.language.atoms.mmas import TiledMma
from ferrule.language.atoms.warpgroup_ops import Field, OperandSource, matrix_of
from ferrule.language.faces.tensor_cores import SharedMatrix
from ferrule.language.ir import ops
from ferrule.language.ir.tensor_cores import WarpgroupMma
from ferrule.language.ir.types import TensorType
from ferrule.language.layouts import Swizzle
from ferrule.language.lowering import settings
from ferrule.language.lowering.arguments import bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.device.threads import place
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.tensors import arranged
from ferrule.language.lowering.tensors.runs import Runs
from ferrule.language.values import Number, SwizzledView, TensorView
from ferrule.specs import Boolean, Int32, Numeric
from ferrule.specs.deferred import dataclass

_Shared = TensorView | SwizzledView


@dataclass(frozen=True, slots=True)
class _Tiles:
    """A matrix in shared memory of shape ((rows or columns, k), tiles, tiles along k)."""

    tensor: _Shared
    layout: SharedMatrix
    tiles: int
    depth: int


def gemm(low: Lowering, tiled: Any, tensors: tuple[Any, ...], node: ast.Call) -> None:
    """`fe.gemm(tiled_mma, d, a, b, c)` of an operation of a warpgroup."""
    d, a, b, c = tensors
    op = tiled.op
    if c is not d and not (isinstance(c, TensorView) and c.value is getattr(d, "value", None)):
        low.fail(
            node,
            f"the C of gemm is {describe(c)}",
            expected="D: a product of a warpgroup adds to the sums where they are",
        )
    sums = _registers(low, "D", d, op.dtypes[2], node)
    right = _in_shared_memory(low, op, "B", b, node)
    left = None if op.a_src is OperandSource.RMEM else _in_shared_memory(low, op, "A", a, node)
    own = _registers(low, "A", a, op.dtypes[0], node) if left is None else None
    rows, depth = (left.tiles, left.depth) if left is not None else _sizes(a)
    _require_shapes(low, d, (rows, right.tiles), (depth, right.depth), node)
    adds = _setting(low, tiled, Field.ACCUMULATE)
    count, of_a = op.shape_mnk[1] // 2, op.shape_mnk[2] // 2
    low.state.writes += 1
    for k in range(depth):
        flag = coercion.convert(low, coercion.as_number(low, k > 0 or adds, node, Boolean), Boolean)
        for column in range(right.tiles):
            for row in range(rows):
                target = sums.view(count * (row + rows * column), count)
                factor = (
                    own.view(of_a * (row + rows * k), of_a)
                    if own is not None
                    else _start(low, left, row, k, node)
                )
                layout = None if left is None else left.layout
                other = _start(low, right, column, k, node)
                where = place(low, node)
                low.builder.append(
                    WarpgroupMma(target, factor, other, flag.value, layout, right.layout, where)
                )


def _registers(low: Lowering, name: str, value: Any, dtype: Any, node: ast.AST) -> Runs:
    if not isinstance(value, TensorView) or not value.type.is_own:
        low.fail(
            node,
            f"{name} of gemm is {describe(value)}",
            expected="a tensor in registers, such as make_rmem_tensor(part.shape, dtype)",
        )
    if value.type.dtype is not dtype:
        low.fail(
            node,
            f"{name} of gemm has the dtype {value.type.dtype.name}",
            expected=dtype.name,
        )
    runs = Runs(low, value, node)
    if not runs.side_by_side(0, int(layouts.size(value.layout))):
        low.fail(
            node,
            f"{name} of gemm has the layout {value.layout}",
            expected="a compact one: a product runs in the background, on these registers",
        )
    return runs


def _sizes(value: Any) -> tuple[int, int]:
    """The tiles of a tensor behind its first mode."""
    shape = layouts.product_each(value.layout.shape)
    rest = [int(each) for each in shape[1:]] + [1, 1]
    return rest[0], rest[1]


def _in_shared_memory(low: Lowering, op: Any, name: str, value: Any, node: ast.AST) -> _Tiles:
    if not isinstance(value, (TensorView, SwizzledView)) or not value.type.is_shared:
        low.fail(
            node,
            f"{name} of gemm is {describe(value)}",
            expected=f"a part in shared memory, such as thr_mma.partition_{name}(tile)",
        )
    dtype = op.dtypes["AB".index(name)]
    if value.type.dtype is not dtype:
        low.fail(node, f"{name} of gemm has the dtype {value.type.dtype.name}", expected=dtype.name)
    mode = op.a_major_mode if name == "A" else op.b_major_mode
    rows = 64 if name == "A" else op.shape_mnk[1]
    own = value.layout[0]
    sizes = tuple(int(layouts.size(own, [i])) for i in range(len(own))) if len(own) == 2 else ()
    span = _span(low, value, dtype.itemsize, node)
    found = None
    if sizes == (rows, op.shape_mnk[2]) and layouts.is_static(own):
        found = matrix_of(own, span, dtype.itemsize, mode.value)
    if found is None:
        low.fail(
            node,
            f"{name} of gemm, {value.name}, has the layout {value.layout} with a swizzle over "
            f"{span} bytes",
            expected=f"(({rows},{op.shape_mnk[2]}),tiles,tiles), arranged {mode.value}-major as "
            "the hardware has it",
            hint="tile_to_shape(nvgpu.warpgroup.make_smem_layout_atom(kind, dtype), shape, order)",
        )
    return _Tiles(value, found, *_sizes(value))


def _span(low: Lowering, value: _Shared, itemsize: int, node: ast.AST) -> int:
    """The bytes of a swizzle that the hardware knows."""
    if isinstance(value, TensorView):
        return 0
    inner = value.inner
    known = isinstance(inner, Swizzle)
    if known and inner.num_bits == 0:
        return 0
    base = inner.num_base + itemsize.bit_length() - 1 if known else 0
    if not known or (base, inner.num_shift) != (4, 3) or inner.num_bits > 3:
        low.fail(
            node,
            f"{value.name} is swizzled by {inner}",
            expected="S<1,4,3>, S<2,4,3> or S<3,4,3> of addresses in bytes",
        )
    return 16 << int(inner.num_bits)


def _start(low: Lowering, of: _Tiles | None, tile: int, k: int, node: ast.AST) -> ops.Value:
    """The address of the first element of a tile, before the swizzle."""
    assert of is not None
    at = (None, tile, k)[: len(of.tensor.layout)]
    part = arranged.cut(low, of.tensor, at, node)
    type_ = part.type  # type: ignore[union-attr]
    one = TensorType(type_.dtype, (1 << 32,), (1,), type_.dtype.itemsize, type_.space)
    if isinstance(part, TensorView):
        return low.builder.view(part.value, one)
    assert isinstance(part, SwizzledView)
    index = low.builder.constant(Int32, part.begin.known)
    if part.begin.number is not None:
        number = coercion.convert(low, part.begin.number, Int32).value
        index = low.builder.binary("add", number, index)
    return low.builder.view(part.root, one, (index,))


def _require_shapes(
    low: Lowering, d: Any, tiles: tuple[int, int], depths: tuple[int, int], node: ast.AST
) -> None:
    if _sizes(d) != tiles or depths[0] != depths[1]:
        low.fail(
            node,
            f"D of gemm has {_sizes(d)} tiles, A and B {tiles} and {depths} along k",
            expected="(values, M, N), (values, M, K), (values, N, K)",
        )


# ---- what a tiled multiplication is set to ----


def set_field(tiled: TiledMma, low: Lowering, args: Any, kwargs: Any, node: ast.Call) -> None:
    """`tiled_mma.set(field, value)`: from here on, in the order of the run."""
    field, value = bound(low, "field value", args, kwargs, node)
    _require_field(low, tiled, field, node)
    known = value.value if isinstance(value, Numeric) else coercion.plain(value)
    if isinstance(known, (bool, int)):
        settings.put(low, (id(tiled), field), tiled, bool(known))
        return
    if not isinstance(value, Number):
        low.fail(node, f"{field.name} is {describe(value)}", expected="a Boolean")
    settings.put(low, (id(tiled), field), tiled, coercion.convert(low, value, Boolean).value)


def get_field(tiled: TiledMma, low: Lowering, args: Any, kwargs: Any, node: ast.Call) -> Any:
    """`tiled_mma.get(field)`."""
    (field,) = bound(low, "field", args, kwargs, node)
    _require_field(low, tiled, field, node)
    return _setting(low, tiled, field)


def _setting(low: Lowering, tiled: TiledMma, field: Field) -> Any:
    """What a field of this object is set to here; false at first."""
    found = settings.get(low, (id(tiled), field))
    return Number(found) if isinstance(found, ops.Value) else found


def _require_field(low: Lowering, tiled: TiledMma, field: Any, node: ast.AST) -> None:
    if not isinstance(field, Field) or not getattr(tiled.op, "warpgroup", False):
        low.fail(
            node,
            f"{describe(field)} of a tiled mma of {type(tiled.op).__name__}",
            expected="nvgpu.warpgroup.Field.ACCUMULATE, of an operation of a warpgroup",
        )
