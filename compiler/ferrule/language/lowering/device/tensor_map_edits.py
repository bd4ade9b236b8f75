"""Tensor maps in memory: `fe.nvgpu.cpasync.copy_tensormap`, `update_tma_descriptor`, fences."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, Final

from ferrule.language.faces.pipelines import tensor_map_edits as faces
from ferrule.language.faces.pipelines.boxes import TmaAtom
from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.language.layouts.tuples import leaves
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.device.threads import is_first_lane, lane_of, require_kernel
from ferrule.language.lowering.device.tma_atoms import atom_of, words_at
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.numbers.sizes import is_number_tensor
from ferrule.language.values import PointerView, TensorView
from ferrule.specs import Int64
from ferrule.specs.expr import is_dim


def _copy(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`copy_tensormap(tma_atom, tensormap_ptr)`."""
    name = "copy_tensormap"
    given, pointer = bound(low, "tma_atom tensormap_ptr", args, kwargs, node)
    require_kernel(low, name, node)
    map_ = atom_of(low, name, given, node).tensor_map
    target = words_at(low, name, pointer, node)
    low.state.writes += 1
    low.builder.append(ops.MapCopy(target, map_.value, map_.boxes, lane_of(low)))


def _update(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`update_tma_descriptor(tma_atom, gmem_tensor, tma_desc_ptr)`."""
    name = "update_tma_descriptor"
    words = "tma_atom gmem_tensor tma_desc_ptr"
    given, tensor, pointer = bound(low, words, args, kwargs, node)
    require_kernel(low, name, node)
    atom = atom_of(low, name, given, node)
    _require_tensor(low, atom, tensor, node)
    place = words_at(low, name, pointer, node)
    low.state.writes += 1
    with low.builder.region() as asked:
        _fields(low, atom, tensor, place, node)
    low.builder.if_(is_first_lane(low), asked.freeze(), ops.Region(), ())


def _require_tensor(low: Lowering, atom: TmaAtom, tensor: Any, node: ast.AST) -> None:
    own: TensorType = atom.tensor_map.value.tensor
    modes = max(atom.dims) + 1
    memory = tensor.iterator if is_number_tensor(tensor) else tensor
    fits = isinstance(memory, (TensorView, PointerView))
    fits = fits and not (memory.type.is_own or memory.type.is_shared)
    if not fits or memory.type.dtype is not own.dtype or _rank(tensor) < modes:
        low.fail(
            node,
            f"update_tma_descriptor to {describe(tensor)}",
            expected=f"a tensor of {own.dtype.name} in global memory, with {modes} modes or more",
        )
    inner = atom.dims[atom.tensor_map.boxes.order[0]]
    stride = coercion.plain(_sides(tensor)[1][inner])
    if isinstance(stride, int) and stride != 1:
        low.fail(
            node,
            f"mode {inner} of {describe(tensor)} has stride {stride}",
            expected="1, as in the tensor of the atom",
        )


def _rank(tensor: Any) -> int:
    return len(_sides(tensor)[0])


def _sides(tensor: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    """The sizes and strides of a tensor, without their nesting."""
    if isinstance(tensor, TensorView):
        return tensor.type.shape, tensor.type.strides
    return list(leaves(tensor.layout.shape)), list(leaves(tensor.layout.stride))


def _fields(low: Lowering, atom: TmaAtom, tensor: Any, place: ops.Value, node: ast.AST) -> None:
    """Changes all fields that tensors differ in."""
    b = low.builder
    memory = tensor.iterator if is_number_tensor(tensor) else tensor
    address = ops.Value(Int64, "address")
    b.append(ops.Address(address, memory.value))
    b.append(ops.MapEdit("address", place, address))
    size = b.constant(Int64, memory.type.dtype.itemsize)
    shape, strides = _sides(tensor)
    for number, kept in enumerate(atom.tensor_map.boxes.order):
        dim = atom.dims[kept]
        b.append(ops.MapEdit("dim", place, _number(low, shape[dim], node), number))
        if number:
            stride = b.binary("mul", _number(low, strides[dim], node), size)
            b.append(ops.MapEdit("stride", place, stride, number))


def _number(low: Lowering, value: Any, node: ast.AST) -> ops.Value:
    """A size or a stride, an Int64."""
    if is_dim(value):
        return low.builder.size(Int64, value)
    return coercion.convert(low, coercion.as_number(low, value, node), Int64).value


def _release(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    bound(low, "", args, kwargs, node)
    require_kernel(low, "fence_tma_desc_release", node)
    low.state.writes += 1
    low.builder.control("fence_proxy_tensormap_release")


def _acquire(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    (pointer,) = bound(low, "tma_desc_ptr", args, kwargs, node)
    name = "fence_tma_desc_acquire"
    require_kernel(low, name, node)
    low.state.writes += 1
    low.builder.append(ops.MapEdit("acquire", words_at(low, name, pointer, node, "global")))


def _publish(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    words = "tma_desc_global_ptr tma_desc_shared_ptr"
    there, here = bound(low, words, args, kwargs, node)
    name = "cp_fence_tma_desc_release"
    require_kernel(low, name, node)
    target = words_at(low, name, there, node, "global")
    source = words_at(low, name, here, node, "shared")
    low.state.writes += 1
    low.builder.append(ops.MapEdit("publish", target, source))


TABLE: Final[dict[Any, Intrinsic]] = {
    faces.copy_tensormap: _copy,
    faces.update_tma_descriptor: _update,
    faces.fence_tma_desc_release: _release,
    faces.fence_tma_desc_acquire: _acquire,
    faces.cp_fence_tma_desc_release: _publish,
}
"""The emitters of these functions."""
