"""`fe.nvgpu.cpasync`: tiles that are copied as boxes of tensors, by `fe.copy`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import product
from typing import Any, Final

from ferrule.compiler.cuda.tilings import Swizzle, Tiling, data_type, innermost_first, named
from ferrule.language import layouts
from ferrule.language.atoms import bulk
from ferrule.language.atoms.bulk import LOADS, Boxes
from ferrule.language.faces import tiles as faces
from ferrule.language.faces.pipelines.boxes import TmaAtom
from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.language.layouts import make_identity_layout
from ferrule.language.layouts.tuples import leaves
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.device.mbarriers import barrier_at
from ferrule.language.lowering.device.threads import integer, is_first_lane, require_kernel
from ferrule.language.lowering.numbers import coercion, scalars
from ferrule.language.lowering.numbers.sizes import as_dims
from ferrule.language.lowering.numbers.sizes import named as named_dims
from ferrule.language.lowering.tensors import arranged, coordinate_views, swizzled
from ferrule.language.lowering.tensors.coordinates import refusals
from ferrule.language.values import (
    CoordinateView,
    PointerView,
    SwizzledView,
    TensorMapView,
    TensorView,
)
from ferrule.specs import Int32, Int64

_Args = list[Any]
_Kwargs = dict[str, Any]
_Shared = TensorView | SwizzledView
_MAP_WORDS: Final = 16
"""A tensor map in memory has 16 Int64."""
_SWIZZLES: Final = {0: "none", 32: "32B", 64: "64B", 128: "128B"}


def _make(
    low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call
) -> tuple[TmaAtom, CoordinateView]:
    """`make_tiled_tma_atom(op, gmem_tensor, smem_layout, cta_tiler, num_multicast=1)`."""
    words = "op gmem_tensor smem_layout cta_tiler num_multicast="
    op, tensor, layout, tiler, several = bound(low, words, args, kwargs, node)
    if low.kind != "host":
        low.fail(node, "make_tiled_tma_atom is known only in a host function")
    if not isinstance(tensor, TensorView) or tensor.type.is_own or _nests(tensor):
        low.fail(
            node,
            f"make_tiled_tma_atom of {describe(tensor)}",
            expected="a tensor in global memory whose first two modes do not nest",
        )
    parts = 1 if several is None else coercion.plain(several)
    _require_op(low, op, parts, node)
    tile = as_dims(low, tiler, node)
    type_ = tensor.type
    dims = tuple(i for i, stride in enumerate(type_.strides) if stride != 0)
    with refusals(low, node):
        first = innermost_first([type_.strides[i] for i in dims])[0]
        # The contiguous mode, then the others as in the tensor: programs may name the coordinates.
        order = (first, *(i for i in range(len(dims)) if i != first))
        given = tile if isinstance(tile, tuple) else (tile,)
        itemsize = type_.dtype.itemsize
        boxes = bulk.boxes_of(op, layout, given, order[0], itemsize, parts)
    box = {boxes.inner: boxes.box[0], boxes.outer: boxes.box[1]}
    sizes = tuple(box.get(dim, 1) for dim in order)
    try:
        tiling = Tiling(
            data_type(type_.dtype),
            sizes,
            (1,) * len(order),
            swizzle=named(Swizzle, "swizzle", _SWIZZLES[boxes.swizzle]),
        )
    except ValueError as error:
        low.fail(node, f"make_tiled_tma_atom of {tensor.name}: {error}")
    map_ = TensorMapView(_with_dims(low, tensor, dims), tensor.name, ops.Boxes(tiling, order))
    identity = make_identity_layout(named_dims(low, tensor.layout).shape)
    return TmaAtom(map_, boxes, dims), coordinate_views.tensor(identity, tensor.name)


def _nests(tensor: TensorView) -> bool:
    """Whether one of the first two modes has several dims, or none in memory."""
    first = layouts.flatten((tensor.layout.shape,))[:2]
    modes = tensor.layout.shape if isinstance(tensor.layout.shape, tuple) else ()
    flat = not any(isinstance(mode, tuple) for mode in modes[:2])
    return not flat or len(first) != len(modes[:2]) or 0 in tensor.type.strides[:2]


def _with_dims(low: Lowering, tensor: TensorView, dims: tuple[int, ...]) -> ops.Value:
    """The tensor without its other dims: those with stride 0, along which it has one element."""
    type_ = tensor.type
    if len(dims) == len(type_.shape):
        return tensor.value
    shape, strides = ([each[i] for i in dims] for each in (type_.shape, type_.strides))
    kept = TensorType(type_.dtype, tuple(shape), tuple(strides), type_.align, type_.space)
    return low.builder.view(tensor.value, kept)


def _require_op(low: Lowering, op: Any, parts: Any, node: ast.AST) -> None:
    known = (*LOADS, bulk.CopyBulkTensorTileS2GOp)
    if not isinstance(op, known):
        names = " or ".join(each.__name__ for each in known)
        low.fail(node, f"the op of make_tiled_tma_atom is {describe(op)}", expected=names)
    if isinstance(parts, bool) or not isinstance(parts, int) or parts < 1:
        low.fail(node, f"num_multicast is {describe(parts)}", expected="an int from 1 on")
    if parts > 1 and not isinstance(op, bulk.CopyBulkTensorTileG2SMulticastOp):
        low.fail(
            node,
            f"num_multicast={parts} of {type(op).__name__}",
            expected="CopyBulkTensorTileG2SMulticastOp",
        )
    if parts > 1 and low.state.target == "cpu":
        low.fail(
            node,
            f"num_multicast={parts} on the CPU, where a cluster is one block",
            hint="compile it for --target cuda, on an emulated GPU if there is none",
        )


# ---- in kernels ----


def atom_of(low: Lowering, name: str, given: Any, node: ast.AST) -> TmaAtom:
    """An atom of `make_tiled_tma_atom`.  A CompileError for anything else."""
    if isinstance(given, TmaAtom):
        return given
    low.fail(
        node, f"{name} of {describe(given)}", expected="the first result of make_tiled_tma_atom"
    )


def words_at(low: Lowering, name: str, pointer: Any, node: ast.AST, space: str = "") -> ops.Value:
    """The words of a map at a pointer; `space` is "global" or "shared" where only one will do."""
    fits = isinstance(pointer, PointerView) and not pointer.type.is_own
    if fits and space:
        fits = pointer.type.is_shared == (space == "shared")
    if not fits:
        where = f"{space} memory" if space else "global or shared memory"
        low.fail(
            node,
            f"{name} of {describe(pointer)}",
            expected=f"a pointer into {where}, to the 128 bytes of a tensor map",
            hint="the iterator of 16 int64 of a tensor, with assumed_align=64",
        )
    old = pointer.type
    type_ = TensorType(Int64, (_MAP_WORDS,), (1,), old.align, old.space)
    return low.builder.view(pointer.value, type_)


def _partition(
    low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call
) -> tuple[_Shared, CoordinateView]:
    """`tma_partition(atom, cta_coord, cta_layout, smem_tensor, gmem_tensor)`."""
    words = "atom cta_coord cta_layout smem_tensor gmem_tensor"
    given, place, layout, shared, there = bound(low, words, args, kwargs, node)
    atom = atom_of(low, "tma_partition", given, node)
    require_kernel(low, "tma_partition", node)
    boxes: Boxes = atom.boxes
    _require_sides(low, "tma_partition", shared, there, node)
    if layouts.size(layout) != boxes.parts:
        low.fail(
            node,
            f"tma_partition among {layouts.size(layout)} blocks",
            expected=f"{boxes.parts}, the num_multicast of the atom",
        )
    if boxes.parts == 1:
        return shared, there
    row = coercion.as_number(low, scalars.arithmetic(low, "mul", place, boxes.rows, node), node)
    own: tuple[Any, Any] = (row, 0) if boxes.outer == 0 else (0, row)

    def moved(tensor: Any) -> Any:
        rest = (0,) * (len(tensor.layout) - 1)
        return arranged.offset(low, tensor, (own, *rest), node)

    return moved(shared), moved(there)


def _require_sides(low: Lowering, name: str, shared: Any, there: Any, node: ast.AST) -> None:
    is_shared = isinstance(shared, (TensorView, SwizzledView)) and shared.type.is_shared
    if not is_shared or not isinstance(there, CoordinateView):
        low.fail(
            node,
            f"{name} of {describe(shared)} and {describe(there)}",
            expected="a tensor in shared memory, and a part of the second result of "
            "make_tiled_tma_atom",
        )


def copy(
    low: Lowering, atom: TmaAtom, sides: tuple[Any, Any], given: Sequence[Any], node: ast.Call
) -> None:
    """`fe.copy(atom, src, dst, tma_bar_ptr=None, mcast_mask=None, tma_desc_ptr=None)`: the boxes
    of one tile, for which one lane of the warp asks."""
    require_kernel(low, "a copy of boxes", node)
    boxes: Boxes = atom.boxes
    loads = isinstance(boxes.op, LOADS)
    shared, there = (sides[1], sides[0]) if loads else sides
    _require_sides(low, "a copy of boxes", shared, there, node)
    barrier, mask, at = given
    if loads == (barrier is None):
        low.fail(
            node,
            f"a copy by {type(boxes.op).__name__}",
            expected="tma_bar_ptr, the barrier at which it arrives"
            if loads
            else "no tma_bar_ptr: cp_async_bulk_commit_group ends it",
        )
    to = barrier_at(low, "copy", barrier, node) if loads else None
    several = None
    if boxes.parts > 1:
        if mask is None:
            low.fail(node, f"a copy by {type(boxes.op).__name__}", expected="mcast_mask=")
        several = integer(low, mask, Int32, "the mcast_mask", node)
    described = None
    if at is not None:
        described = words_at(low, "the tma_desc_ptr of copy", at, node, "global")
    low.state.writes += 1
    with low.builder.region() as asked:
        for box in boxes.places:
            _box(low, atom, (shared, there), box, (to, several, described), node)
    low.builder.if_(is_first_lane(low), asked.freeze(), ops.Region(), ())


def _box(
    low: Lowering,
    atom: TmaAtom,
    sides: tuple[Any, Any],
    box: tuple[int, int, int],
    more: tuple[Any, Any, Any],
    node: ast.AST,
) -> None:
    shared, there = sides
    boxes: Boxes = atom.boxes
    map_: TensorMapView = atom.tensor_map
    at = _corner(low, atom, there, (0,) * len(there.layout), box, node)
    kind: ops.TensorCopyKind = "load" if isinstance(boxes.op, LOADS) else "store"
    memory = _place(low, shared, box[2])
    low.builder.append(ops.TensorCopy(kind, map_.value, map_.boxes, at, memory, *more))


def _corner(
    low: Lowering,
    atom: TmaAtom,
    there: CoordinateView,
    place: tuple[Any, ...],
    box: tuple[int, int, int],
    node: ast.AST,
) -> tuple[ops.Value, ...]:
    """The coordinates in the tensor where a box of the tile at a place begins."""
    boxes: Boxes = atom.boxes
    along, across, _ = box
    every = list(leaves(coordinate_views.element(low, there, place, node)))
    origin = [every[dim] for dim in atom.dims]
    for mode, by in ((boxes.inner, along), (boxes.outer, across)):
        origin[mode] = (
            scalars.arithmetic(low, "add", origin[mode], by, node) if by else origin[mode]
        )
    # The hardware has coordinates of 32 bits, and a map has no larger sizes.
    numbers = (coercion.as_number(low, each, node) for each in origin)
    return tuple(coercion.convert(low, each, Int32).value for each in numbers)


def _place(low: Lowering, shared: _Shared, offset: int) -> ops.Value:
    """The memory so many elements behind the first one, before the swizzle."""
    type_ = shared.type
    align = 128 if offset * type_.dtype.itemsize % 128 == 0 else type_.dtype.itemsize
    one = TensorType(type_.dtype, (1 << 32,), (1,), min(align, type_.align), type_.space)
    if isinstance(shared, TensorView):
        start = low.builder.view(shared.value, one)
        return low.builder.view(start, one, (low.builder.constant(Int32, offset),))
    return low.builder.view(shared.root, one, (swizzled.begin_of(low, shared, offset),))


def _prefetch_boxes(low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call) -> None:
    """`fe.prefetch(atom, src)`."""
    given, there = bound(low, "atom src", args, kwargs, node)
    atom = atom_of(low, "prefetch", given, node)
    require_kernel(low, "prefetch", node)
    boxes: Boxes = atom.boxes
    if not isinstance(boxes.op, LOADS):
        names = " or ".join(each.__name__ for each in LOADS)
        low.fail(node, f"prefetch by {type(boxes.op).__name__}", expected=names)
    if not isinstance(there, CoordinateView):
        low.fail(
            node,
            f"prefetch of {describe(there)}",
            expected="a part of the second result of make_tiled_tma_atom",
        )
    rest = tuple(layouts.size(there.layout, mode=[i]) for i in range(1, len(there.layout)))
    if not all(isinstance(count, int) for count in rest):
        low.fail(
            node,
            f"prefetch of {there.name}, of layout {there.layout}",
            expected="compile-time sizes of the modes behind the first",
            hint="name a place of the others: tAgA[None, k]",
        )
    map_: TensorMapView = atom.tensor_map
    low.state.writes += 1
    with low.builder.region() as asked:
        for place in product(*map(range, rest)):
            for box in boxes.places:
                at = _corner(low, atom, there, (0, *place), box, node)
                low.builder.append(ops.TensorCopy("prefetch", map_.value, map_.boxes, at))
    low.builder.if_(is_first_lane(low), asked.freeze(), ops.Region(), ())


def _prefetch(low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call) -> None:
    """`prefetch_descriptor(atom)`."""
    (given,) = bound(low, "tma_atom", args, kwargs, node)
    atom = atom_of(low, "prefetch_descriptor", given, node)
    require_kernel(low, "prefetch_descriptor", node)
    map_: TensorMapView = atom.tensor_map
    low.builder.append(ops.TensorCopy("prefetch_map", map_.value, map_.boxes))


TABLE: Final[dict[Any, Intrinsic]] = {
    faces.make_tiled_tma_atom: _make,
    faces.tma_partition: _partition,
    faces.prefetch: _prefetch_boxes,
    faces.prefetch_descriptor: _prefetch,
}
"""The emitters of these functions."""
