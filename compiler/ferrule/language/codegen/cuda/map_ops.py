"""Tensor maps that a kernel changes, on a GPU: PTX's `tensormap.replace` and the fences of maps."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.language.codegen.functions.lowering import EmitOp, FunctionLowering
from ferrule.language.ir import ops
from ferrule.runtime.llvm.layouts import I32, I64, VOID

_FIELDS: Final = {"address": "global_address", "dim": "global_dim", "stride": "global_stride"}
_WIDE: Final = ("address", "stride")
_FENCES: Final = {
    "acquire": "fence.proxy.tensormap::generic.acquire.gpu [$0], 128;",
    "publish": "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync"
    ".aligned [$0], [$1], 128;",
}


def text_of(op: ops.MapEdit) -> str:
    """The instruction: `$0` is the map's address, `$1` the new value or the other map."""
    if op.kind in _FENCES:
        return _FENCES[op.kind]
    space = "shared::cta" if op.place.tensor.is_shared else "global"
    # The innermost dim has no stride, so the first one is that of the next dim.
    number = {"address": "", "dim": f"{op.dim}, ", "stride": f"{op.dim - 1}, "}[op.kind]
    width = "b64" if op.kind in _WIDE else "b32"
    head = f"tensormap.replace.tile.{_FIELDS[op.kind]}.{space}.b1024.{width}"
    return f"{head} [$0], {number}$1;"


def is_wide(op: ops.MapEdit) -> bool:
    """Whether the new value has 64 bits; those of sizes have 32."""
    return op.kind in _WIDE


def _edit(lowering: FunctionLowering, op: ops.MapEdit) -> None:
    b, given = lowering.b, [_address(lowering, op.place)]
    if op.kind == "publish":
        assert op.value is not None
        given.append(_address(lowering, op.value))
    elif op.value is not None:
        value = lowering.values[op.value]
        given.append(value if is_wide(op) else b.trunc(value, I32))
    letters = ["l" if value.type == I64 else "r" for value in given]
    kind = ir.FunctionType(VOID, [value.type for value in given])
    code = ir.InlineAsm(kind, text_of(op), ",".join([*letters, "~{memory}"]), side_effect=True)
    b.call(code, given).attributes.add("convergent")


def _address(lowering: FunctionLowering, place: ops.Value) -> ir.Value:
    kind = I32 if place.tensor.is_shared else I64
    return lowering.b.ptrtoint(lowering.values[place], kind)


def _copy(lowering: FunctionLowering, op: ops.MapCopy) -> None:
    """Each lane copies 4 of the 128 bytes."""
    b, lane = lowering.b, lowering.values[op.lane]
    source = b.gep(lowering.tensor_maps[op.mapped], [lane], source_etype=I32)
    target = b.gep(lowering.values[op.target], [lane], source_etype=I32)
    b.store(b.load(source, typ=I32, align=4), target, align=4)


EMITTERS: Final[Mapping[type[ops.Op], EmitOp]] = MappingProxyType(
    {ops.MapCopy: _copy, ops.MapEdit: _edit}
)
