"""A body that encodes a tensor map of numbers that it is given, and launches a kernel with it."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ferrule.compiler import targets
from ferrule.compiler.artefacts import Body, Fault, Location
from ferrule.compiler.cuda.launcher.faults import failures
from ferrule.compiler.cuda.launcher.launch import Launcher
from ferrule.compiler.cuda.launcher.tensor_maps import encoding_faults
from ferrule.compiler.cuda.tilings import Tiling
from ferrule.compiler.origin import CompiledOrigin, host_module
from ferrule.runtime import Function, ObjectCode, load_function
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32, I64, PTR
from ferrule.specs import Int64, Scalar, Signature

NAME = "copies"
WHERE = Location("kernels.py", NAME, 7)
IMAGE = b"""\
.version 8.0
.target sm_90
.address_size 64
.visible .entry copy(.param .align 64 .b8 copy_map[128]) { ret; }
"""


def function(tiling: Tiling) -> Function:
    """A function of the address, the sizes and the strides of a map; the device is the current."""
    rank = tiling.rank
    names = ["address", *(f"n{i}" for i in range(rank)), *(f"s{i}" for i in range(1, rank))]
    signature = Signature(NAME, tuple(Scalar(name, Int64) for name in names))
    origin = CompiledOrigin(host_module(signature, _body(tiling, names)), "")
    here = targets.host()
    made = origin.emit(NAME, here.cpu, here.triple)
    assert isinstance(made, ObjectCode)
    return load_function(made, signature, origin)


def _body(tiling: Tiling, names: list[str]) -> Body:
    e = Emitter(NAME)
    launcher = Launcher(e, IMAGE, ["copy"])
    faults: list[Fault] = [*failures("in the launch of copy", WHERE)]
    with e.define("ferrule_body", I32, [PTR, *[I64] * len(names)], names=["values", *names]) as f:
        values, address, *dims = f.args
        entered, token, _ = launcher.enter(e.const_i32(-1), values)
        _require(e, launcher, None, entered, 0)
        place = launcher.tensor_map()
        at = e.builder.inttoptr(address, PTR)
        sizes, strides = dims[: tiling.rank], dims[tiling.rank :]
        encoded = launcher.encode_tensor_map(tiling, place, at, sizes, strides, values)
        _require(e, launcher, token, encoded, len(faults))
        faults += encoding_faults(tiling, "a", "in the call of copy", WHERE)
        one = [e.const_i64(1)] * 3
        rest: Any = (e.const_i32(0), e.null(), [place], values)
        _require(e, launcher, token, launcher.launch("copy", one, one, *rest), 0)
        e.ret(launcher.leave(token, values))
    return Body(e.text(), "ferrule_body", (), tuple(faults))


def _require(
    e: Emitter, launcher: Launcher, token: ir.Value | None, status: ir.Value, first: int
) -> None:
    with e.if_then(e.icmp("ne", status, e.const_i32(0)), likely=False):
        if token is not None:
            launcher.leave(token)
        e.ret(e.binary("add", status, e.const_i32(first)))
