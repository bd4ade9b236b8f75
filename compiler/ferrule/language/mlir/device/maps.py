"""Tensor maps that a kernel changes, as MLIR: their instructions are `llvm.inline_asm`."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.language.codegen.cuda.map_ops import is_wide, text_of
from ferrule.language.ir import ops
from ferrule.language.mlir import memory
from ferrule.language.mlir.functions import FunctionText

_Maps = Mapping[tuple[ops.Value, ops.Boxes], str]


def map_of(f: FunctionText, op: ops.TensorCopy, maps: _Maps) -> str:
    """The map of a copy: a parameter, or in global memory."""
    if op.descriptor is None:
        return maps[op.tensor, op.boxes]
    place = memory.pointer(f, op.descriptor)
    kind = f.t.types[place]
    if kind == "!llvm.ptr":
        return place
    return f.t.op(f"llvm.addrspacecast {place} : {kind} to !llvm.ptr", "!llvm.ptr")


def lower(f: FunctionText, op: ops.MapOp, maps: _Maps) -> None:
    """Emits an op."""
    if isinstance(op, ops.MapCopy):
        _copy(f, op, maps)
        return
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


def _copy(f: FunctionText, op: ops.MapCopy, maps: _Maps) -> None:
    """Each lane copies 4 of the 128 bytes."""
    lane, places = f.values[op.lane], []
    for base in (maps[op.mapped], memory.pointer(f, op.target)):
        kind = f.t.types[base]
        text = f"llvm.getelementptr {base}[{lane}] : ({kind}, i32) -> {kind}, i32"
        places.append((f.t.op(text, kind), kind))
    (source, source_kind), (target, target_kind) = places
    word = f.t.op(f"llvm.load {source} {{alignment = 4 : i64}} : {source_kind} -> i32", "i32")
    f.t.line(f"llvm.store {word}, {target} {{alignment = 4 : i64}} : i32, {target_kind}")
