"""Ops of threads that work together on a GPU: shared memory, barriers, warps, atomics, fences.

`gpu` and `memref` have no masks, orders and scopes, so most of these are NVVM's intrinsics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, get_args

from ferrule.language.codegen.cuda.atomics import INSTRUCTIONS
from ferrule.language.codegen.cuda.warpgroups import HOLDING
from ferrule.language.codegen.functions.lowering import ThreadOp
from ferrule.language.codegen.values.scalars import dtype_of
from ferrule.language.ir import ops, scalars
from ferrule.language.mlir import atomics, memory
from ferrule.language.mlir.device import arch, maps, warpgroups
from ferrule.language.mlir.device.arch import EmitOp, intrinsic
from ferrule.language.mlir.device.maps import EmitIn
from ferrule.language.mlir.functions import FunctionText, unknown
from ferrule.language.mlir.types import element_type
from ferrule.specs import DType, Float16

if TYPE_CHECKING:
    from ferrule.language.mlir.device.module import DeviceKernel


_REGISTERS: Final = {"h": "i16", "r": "i32", "l": "i64", "f": "f32", "d": "f64"}


def _inline_ptx(f: FunctionText, op: ops.InlinePtx) -> str:
    """The result of a piece of PTX; Booleans are 0 and 1 in registers of 32 bits."""
    first, *others = [each.removeprefix("=") for each in op.constraints.split(",")]
    given = [
        _converted(f, f.values[value], _REGISTERS[letter], "zext")
        for value, letter in zip(op.given, others, strict=True)
    ]
    kind = _REGISTERS[first]
    types = ", ".join(f.t.types[value] for value in given)
    text = (
        op.text.replace("\\", "\\\\")
        .replace('"', "\\22")
        .replace("\n", "\\0A")
        .replace("\t", "\\09")
    )
    found = f.t.op(
        f'llvm.inline_asm has_side_effects asm_dialect = att "{text}", '
        f'"{op.constraints},~{{memory}}" {", ".join(given)} : ({types}) -> {kind}',
        kind,
    )
    assert isinstance(op.result.type, DType)
    wanted = element_type(op.result.type, f.spaces)
    if wanted == "i1":
        zero = f.t.integer(0, kind)
        return f.t.op(f'llvm.icmp "ne" {found}, {zero} : {kind}', "i1")
    return _converted(f, found, wanted, "trunc")


def _converted(f: FunctionText, value: str, kind: str, of_integers: str) -> str:
    given = f.t.types[value]
    if given == kind:
        return value
    name = of_integers if given.startswith("i") and kind.startswith("i") else "bitcast"
    return f.t.op(f"llvm.{name} {value} : {given} to {kind}", kind)


_SCOPES: Final[dict[str, str]] = {
    "block": 'syncscope("block") ',
    "cta": 'syncscope("block") ',
    "device": 'syncscope("device") ',
    "gpu": 'syncscope("device") ',
    "cluster": 'syncscope("device") ',
    "system": "",
    "sys": "",
}
_INSTRUCTIONS: Final = atomics.spelled(INSTRUCTIONS)


def lower(f: FunctionText, where: DeviceKernel, op: ops.Op) -> None:
    """Emits an op and sets the value of its result, if it has one."""
    own, plain = _OWN.get(type(op)), _OTHERS.get(type(op))
    if own is None and plain is None:
        raise unknown(op, "it is not known on a GPU")
    found = own(f, where, op) if own else plain(f, op)  # type: ignore[misc]
    if found is not None:
        f.values[op.result] = found  # type: ignore[union-attr]


# ---- shared memory ----


def _shared(f: FunctionText, where: DeviceKernel, op: ops.Shared) -> str:
    """The static shared memory of an op.

    Its symbol is external, although no other module uses it: LLVM assumes that a barrier cannot
    change memory with an internal symbol.
    """
    type_, t = op.result.tensor, f.t
    buffer = memory.buffer_type(f, type_)
    symbol = f'@"{where.name}_shared_{where.shared}"'
    where.shared += 1
    t.declare(
        symbol,
        f"  memref.global {symbol} : {buffer} = uninitialized {{alignment = {type_.align} : i64}}",
    )
    place = t.op(f"memref.get_global {symbol} : {buffer}", buffer)
    return memory.of_buffer(f, type_, place, buffer)


def _dynamic(f: FunctionText, where: DeviceKernel, op: ops.DynamicShared) -> str:
    """The dynamic shared memory from this byte on."""
    t, symbol, pointer = f.t, f'@"{where.name}_dynamic"', "!llvm.ptr<3>"
    t.declare(
        symbol,
        f"  llvm.mlir.global external {symbol}() {{addr_space = 3 : i32, "
        f"alignment = {ops.MAX_SHARED_ALIGN} : i64}} : !llvm.array<0 x i8>",
    )
    start = t.op(f"llvm.mlir.addressof {symbol} : {pointer}", pointer)
    text = f"llvm.getelementptr {start}[{op.offset}] : ({pointer}) -> {pointer}, i8"
    return memory.at_pointer(f, op.result.tensor, t.op(text, pointer))


# ---- barriers and warps ----


def _barrier(f: FunctionText, where: DeviceKernel, op: ops.Barrier) -> None:
    if where.aligned and op.id is None and op.count is None:
        f.t.line("gpu.barrier")
        return
    form = "barrier.cta.sync.aligned" if where.aligned else "barrier.cta.sync"
    number = f.t.integer(0, "i32") if op.id is None else f.values[op.id]
    if op.count is None:
        intrinsic(f, f"{form}.all", None, [number])
    else:
        intrinsic(f, f"{form}.count", None, [number, f.values[op.count]])


def _arrive(f: FunctionText, where: DeviceKernel, op: ops.BarrierArrive) -> None:
    form = "barrier.cta.arrive.aligned" if where.aligned else "barrier.cta.arrive"
    intrinsic(f, f"{form}.count", None, [f.values[op.id], f.values[op.count]])


def _control(f: FunctionText, where: DeviceKernel, op: ops.Control) -> None:
    if op.kind in HOLDING:
        warpgroups.control(f, where.kernel, op)
    else:
        arch.control(f, op)


def _warp_barrier(f: FunctionText, op: ops.WarpBarrier) -> None:
    intrinsic(f, "bar.warp.sync", None, [f.values[op.mask]])


def _fence(f: FunctionText, op: ops.Fence) -> None:
    f.t.line(f"llvm.fence {_SCOPES[op.scope]}acq_rel")


def _vote(f: FunctionText, op: ops.Vote) -> str:
    given = [f.values[op.mask], f.values[op.predicate]]
    return intrinsic(f, f"vote.{op.op}.sync", "i32" if op.op == "ballot" else "i1", given)


def _shuffle(f: FunctionText, op: ops.Shuffle) -> str:
    """A shuffle of the value's 32-bit words, one after the other."""
    t, value = f.t, f.values[op.value]
    mask, lane, clamp = (f.values[each] for each in (op.mask, op.lane, op.clamp))

    def one(word: str) -> str:
        return intrinsic(f, f"shfl.sync.{op.op}.i32", "i32", [mask, word, lane, clamp])

    kind = t.types[value]
    bits = int(kind.lstrip("ibf"))
    whole = t.cast("bitcast", value, f"i{bits}")
    if bits == 64:
        words = (whole, t.arith("shrui", whole, t.const_i64(32)))
        low, high = (t.cast("extui", one(t.cast("trunci", w, "i32")), "i64") for w in words)
        whole = t.binary("or", low, t.binary("shl", high, t.const_i64(32)))
    else:
        whole = t.cast("trunci", one(t.cast("extui", whole, "i32")), f"i{bits}")
    return t.cast("bitcast", whole, kind)


def _match(f: FunctionText, op: ops.Match) -> str:
    bits = 64 if dtype_of(op.value).bits == 64 else 32
    given = [f.values[op.mask], f.t.cast("bitcast", f.values[op.value], f"i{bits}")]
    if op.op == "any":
        return intrinsic(f, f"match.any.sync.i{bits}", "i32", given)
    both = "!llvm.struct<(i32, i1)>"
    found = intrinsic(f, f"match.all.sync.i{bits}p", both, given)
    return f.t.op(f"llvm.extractvalue {found}[0] : {both}", "i32")


# ---- atomics ----


def _atomic(f: FunctionText, op: ops.Atomic) -> str:
    """An atomic with the fences that its order requires before and after it; LLVM's back end
    ignores the order of the op itself."""
    scope = _SCOPES[op.scope]
    if op.sem in ("release", "acq_rel"):
        f.t.line(f"llvm.fence {scope}acq_rel")
    old = _changed(f, op, scope)
    if op.sem in ("acquire", "acq_rel"):
        f.t.line(f"llvm.fence {scope}acq_rel")
    return old


def _changed(f: FunctionText, op: ops.Atomic, scope: str) -> str:
    t, dtype = f.t, dtype_of(op.value)
    place = memory.pointer(f, op.tensor, op.indices)
    name = _INSTRUCTIONS.get((op.op, dtype.kind))
    if name is None or not scope or not _has_instruction(op.op, dtype):
        return atomics.swapped_until(f, op, place, f"{scope}monotonic monotonic")
    kind = f.type_of(op.value)
    text = f"llvm.atomicrmw {name} {place}, {f.values[op.value]} {scope}monotonic"
    return t.op(f"{text} : {t.types[place]}, {kind}", kind, "old")


def _has_instruction(op: ops.AtomicOp, dtype: DType) -> bool:
    """Whether every GPU has an instruction for this operation and dtype."""
    return dtype.bits > 16 or (op == "add" and dtype is Float16)


_OWN: Final[dict[type[ops.Op], EmitIn]] = {
    ops.Shared: _shared,
    ops.DynamicShared: _dynamic,
    ops.Barrier: _barrier,
    ops.BarrierArrive: _arrive,
    ops.Control: _control,
    **maps.OF_MAPS,
}
"""The ops whose code depends on the kernel."""
_OTHERS: Final[dict[type[ops.Op], EmitOp]] = {
    ops.WarpBarrier: _warp_barrier,
    ops.Fence: _fence,
    ops.Shuffle: _shuffle,
    ops.Vote: _vote,
    ops.Match: _match,
    ops.Atomic: _atomic,
    **arch.EMITTERS,
    ops.InlinePtx: _inline_ptx,
    **maps.EMITTERS,
    **warpgroups.EMITTERS,
}
scalars.require_all(
    "mlir.device.threads",
    [kind.__name__ for kind in (*_OWN, *_OTHERS)],
    [kind.__name__ for kind in get_args(ThreadOp)],
)
