"""`fe.gemm`: tiles of fragments multiplied by the instruction of an atom."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, Final

from ferrule.language import layouts
from ferrule.language.atoms.mma_ops import MmaUniversalOp
from ferrule.language.atoms.mmas import MmaAtom, TiledMma
from ferrule.language.faces import tiles as faces
from ferrule.language.ir import ops
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.device.copying import gathered
from ferrule.language.lowering.device.threads import mask_of, place, require_kernel
from ferrule.language.lowering.numbers import coercion, scalars
from ferrule.language.lowering.tensors.runs import Runs
from ferrule.language.values import Number, TensorView, ThreadSlice
from ferrule.specs import Float32, Float64
from ferrule.specs.deferred import dataclass

_Args = list[Any]
_Kwargs = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Fragment:
    """A tensor in registers of shape (values, tiles, tiles)."""

    tensor: TensorView
    sizes: tuple[int, int, int]
    runs: Runs

    def first(self, row: int, column: int) -> int:
        """The number of the first value of a tile."""
        values, rows, _ = self.sizes
        return values * (row + rows * column)


def _gemm(low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call) -> None:
    """`fe.gemm(tiled_mma, d, a, b, c)`: d = a @ b + c of fragments."""
    given, *tensors = bound(low, "atom d a b c", args, kwargs, node)
    op = _op_of(low, given, node)
    require_kernel(low, "gemm", node)
    if getattr(op, "warpgroup", False):
        from ferrule.language.lowering.device import warpgroup_products

        tiled = given.of if isinstance(given, ThreadSlice) else given
        warpgroup_products.gemm(low, tiled, tuple(tensors), node)
        return
    d, a, b, c = (
        _fragment(low, op, name, each, node) for name, each in zip("DABC", tensors, strict=True)
    )
    _require_shapes(low, d, a, b, c, node)
    low.state.writes += 1
    depth = a.sizes[2]
    for k in range(depth):
        before = c if k == 0 else d
        if isinstance(op, MmaUniversalOp):
            _by_thread(low, (d, a, b, before), k, node)
        else:
            _by_warp(low, (d, a, b, before), k, node)


def _op_of(low: Lowering, given: Any, node: ast.AST) -> Any:
    tiled = given.of if isinstance(given, ThreadSlice) else given
    if isinstance(tiled, (TiledMma, MmaAtom)):
        return tiled.op
    low.fail(
        node,
        f"the atom of gemm is {describe(given)}",
        expected="the result of make_tiled_mma or make_mma_atom",
    )


def _fragment(low: Lowering, op: Any, name: str, value: Any, node: ast.AST) -> _Fragment:
    if not isinstance(value, TensorView) or not value.type.is_own:
        low.fail(
            node,
            f"{name} of gemm is {describe(value)}",
            expected=f"a fragment, such as tiled_mma.make_fragment_{name.replace('D', 'C')}(part)",
        )
    matrix = name.replace("D", "C")
    dtype = op.dtypes["ABC".index(matrix)]
    if value.type.dtype is not dtype:
        low.fail(
            node,
            f"{name} of gemm has the dtype {value.type.dtype.name}",
            expected=f"{dtype.name}, as {type(op).__name__} has it",
        )
    shape = value.layout.shape
    assert isinstance(shape, tuple)
    sizes = tuple(int(size) for size in layouts.product_each(shape)) + (1,) * (3 - len(shape))
    own = int(layouts.size(op.values(matrix), [1]))
    if len(sizes) != 3 or sizes[0] != own:
        low.fail(
            node,
            f"{name} of gemm has the layout {value.layout}",
            expected=f"({own} values, tiles, tiles)",
            hint="partition a tile, and make a fragment of that",
        )
    return _Fragment(value, (sizes[0], sizes[1], sizes[2]), Runs(low, value, node))


def _require_shapes(
    low: Lowering, d: _Fragment, a: _Fragment, b: _Fragment, c: _Fragment, node: ast.AST
) -> None:
    (_, m, k), (_, n, depth) = a.sizes, b.sizes
    if d.sizes[1:] != (m, n) or c.sizes != d.sizes or k != depth:
        shapes = ", ".join(layouts.format_tuple(each.tensor.layout.shape) for each in (d, a, b, c))
        low.fail(
            node,
            f"the shapes of D, A, B and C of gemm are {shapes}",
            expected="(values, M, N), (values, M, K), (values, N, K) and (values, M, N)",
        )


def _tiles(rows: int, columns: int) -> Iterator[tuple[int, int]]:
    """All tiles of C, there and back, so that neighbours share a fragment."""
    for column in range(columns):
        for step in range(rows):
            yield (step if column % 2 == 0 else rows - 1 - step), column


def _by_warp(low: Lowering, given: tuple[_Fragment, ...], k: int, node: ast.AST) -> None:
    d, a, b, c = given
    mask, where = mask_of(low, None, node), place(low, node)
    left = [_values(low, a, row, k, node) for row in range(a.sizes[1])]
    right = [_values(low, b, column, k, node) for column in range(b.sizes[1])]
    for row, column in _tiles(d.sizes[1], d.sizes[2]):
        before = _values(low, c, row, column, node)
        after, put = gathered(low, d.runs, d.first(row, column), d.sizes[0], node, filled=False)
        low.builder.mma(after, left[row], right[column], before, mask, where)
        put()


def _values(low: Lowering, of: _Fragment, row: int, column: int, node: ast.AST) -> ops.Value:
    first = of.first(row, column)
    return gathered(low, of.runs, first, of.sizes[0], node, filled=True)[0]


def _by_thread(low: Lowering, given: tuple[_Fragment, ...], k: int, node: ast.AST) -> None:
    d, a, b, c = given
    left = [_number(a, row, k) for row in range(a.sizes[1])]
    right = [_number(b, column, k) for column in range(b.sizes[1])]
    for row, column in _tiles(d.sizes[1], d.sizes[2]):
        total = _sum(low, left[row], right[column], _number(c, row, column), node)
        d.runs.store(d.runs.view(d.first(row, column), 1), 0, total)


def _number(of: _Fragment, row: int, column: int) -> Number:
    return of.runs.load(of.runs.view(of.first(row, column), 1), 0)


def _sum(low: Lowering, x: Number, y: Number, z: Number, node: ast.AST) -> ops.Value:
    """`x * y + z`, rounded once where the machine does it."""
    if x.dtype in (Float32, Float64):
        return low.builder.fma(x.value, y.value, z.value)
    product = scalars.arithmetic(low, "mul", x, y, node)
    return coercion.convert(low, scalars.arithmetic(low, "add", product, z, node), z.dtype).value


TABLE: Final[dict[Any, Intrinsic]] = {faces.gemm: _gemm, faces.mma_atom_call: _gemm}
"""The emitters of these functions."""
