"""Tensor maps as MLIR: copies by them, and changes, whose instructions are `llvm.inline_asm`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from ferrule.language.codegen.cuda.map_ops import is_wide, text_of
from ferrule.language.ir import ops
from ferrule.language.mlir import memory
from ferrule.language.mlir.device.arch import EmitOp, in_cluster, intrinsic
from ferrule.language.mlir.functions import FunctionText

if TYPE_CHECKING:
    from ferrule.language.mlir.device.module import DeviceKernel

EmitIn = Callable[[FunctionText, "DeviceKernel", Any], "str | None"]
"""Emits an op whose code depends on the kernel; returns the value of its result."""

_Maps = Mapping[tuple[ops.Value, ops.Boxes], str]


def _tensor_copy(f: FunctionText, where: DeviceKernel, op: ops.TensorCopy) -> None:
    """A copy by a tensor map; the coordinates begin with the innermost one."""
    map_ = _map_of(f, op, where.maps)
    t, no = f.t, f.t.const_i1(False)
    if op.kind == "prefetch_map":
        intrinsic(f, "prefetch.tensormap.p0", None, [map_])
        return
    at = [f.values[op.coordinates[dim]] for dim in op.boxes.order]
    form, hint = f"tile.{len(at)}d", t.const_i64(0)
    if op.kind == "prefetch":
        intrinsic(f, f"cp.async.bulk.tensor.prefetch.{form}", None, [map_, *at, hint, no])
        return
    assert op.shared is not None
    if op.kind == "store":
        given = [memory.pointer(f, op.shared), map_, *at, hint, no]
        intrinsic(f, f"cp.async.bulk.tensor.s2g.{form}", None, given)
        return
    assert op.barrier is not None
    mask = t.integer(0, "i16") if op.mask is None else t.cast("trunci", f.values[op.mask], "i16")
    given = [in_cluster(f, op.shared), memory.pointer(f, op.barrier), map_, *at, mask, hint]
    given += [t.const_i1(op.mask is not None), no, t.integer(0, "i32")]
    intrinsic(f, f"cp.async.bulk.tensor.g2s.{form}", None, given)


def _map_of(f: FunctionText, op: ops.TensorCopy, maps: _Maps) -> str:
    """The map of a copy: a parameter, or in global memory."""
    if op.descriptor is None:
        return maps[op.tensor, op.boxes]
    place = memory.pointer(f, op.descriptor)
    kind = f.t.types[place]
    if kind == "!llvm.ptr":
        return place
    return f.t.op(f"llvm.addrspacecast {place} : {kind} to !llvm.ptr", "!llvm.ptr")


def _edit(f: FunctionText, op: ops.MapEdit) -> None:
    given = [_address(f, op.place)]
    if op.kind == "publish":
        assert op.value is not None
        given.append(_address(f, op.value))
    elif op.value is not None:
        value = f.values[op.value]
        given.append(value if is_wide(op) else f.t.cast("trunci", value, "i32"))
    types = [f.t.types[value] for value in given]
    letters = ["l" if kind == "i64" else "r" for kind in types]
    constraints = ",".join([*letters, "~{memory}"])
    f.t.line(
        f'llvm.inline_asm has_side_effects asm_dialect = att "{text_of(op)}", "{constraints}" '
        f"{', '.join(given)} : ({', '.join(types)}) -> ()"
    )


def _address(f: FunctionText, place: ops.Value) -> str:
    found, kind = memory.pointer(f, place), "i32" if place.tensor.is_shared else "i64"
    return f.t.op(f"llvm.ptrtoint {found} : {f.t.types[found]} to {kind}", kind)


def _copy(f: FunctionText, where: DeviceKernel, op: ops.MapCopy) -> None:
    """Each lane copies 4 of the 128 bytes."""
    lane, places = f.values[op.lane], []
    for base in (where.maps[op.mapped], memory.pointer(f, op.target)):
        kind = f.t.types[base]
        text = f"llvm.getelementptr {base}[{lane}] : ({kind}, i32) -> {kind}, i32"
        places.append((f.t.op(text, kind), kind))
    (source, source_kind), (target, target_kind) = places
    word = f.t.op(f"llvm.load {source} {{alignment = 4 : i64}} : {source_kind} -> i32", "i32")
    f.t.line(f"llvm.store {word}, {target} {{alignment = 4 : i64}} : i32, {target_kind}")


EMITTERS: Final[Mapping[type[ops.Op], EmitOp]] = MappingProxyType({ops.MapEdit: _edit})
OF_MAPS: Final[Mapping[type[ops.Op], EmitIn]] = MappingProxyType(
    {ops.TensorCopy: _tensor_copy, ops.MapCopy: _copy}
)
"""Those that read a map of the kernel."""
