"""Cooperating threads on a GPU: shared memory, barriers, shuffles, votes, matches, fences.

Each op is one of NVVM's intrinsics.  The globals of a kernel have its name as a prefix: one module
has many kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, get_args

from llvmlite import ir

from ferrule.compiler.cuda import archs
from ferrule.language.codegen.cuda import arch_ops, atomics, map_ops, warpgroups
from ferrule.language.codegen.errors import CodegenError
from ferrule.language.codegen.facts.uniform import Divergent, Uniform
from ferrule.language.codegen.functions.lowering import EmitOp, FunctionLowering, ThreadOp
from ferrule.language.codegen.passes.unrolled import fragments_of
from ferrule.language.codegen.values.scalars import dtype_of, memory_type, value_type
from ferrule.language.ir import ops, scalars
from ferrule.runtime.llvm.layouts import F32, F64, I1, I8, I16, I32, I64, VOID
from ferrule.specs.deferred import dataclass

REGISTERS: Final = {"h": I16, "r": I32, "l": I64, "f": F32, "d": F64}
"""The type of a register by the letter of its constraint."""


def _inline_ptx(lowering: FunctionLowering, op: ops.InlinePtx) -> ir.Value:
    """The result of a piece of PTX; Booleans are 0 and 1 in registers of 32 bits."""
    b = lowering.b
    first, *others = [each.removeprefix("=") for each in op.constraints.split(",")]
    given = [
        _register(b, lowering.values[value], REGISTERS[letter])
        for value, letter in zip(op.given, others, strict=True)
    ]
    kind = ir.FunctionType(REGISTERS[first], [value.type for value in given])
    code = ir.InlineAsm(kind, op.text, f"{op.constraints},~{{memory}}", side_effect=True)
    call = b.call(code, given)
    call.attributes.add("convergent")
    return _value(b, call, value_type(dtype_of(op.result)))


def _register(b: ir.IRBuilder, value: ir.Value, kind: ir.Type) -> ir.Value:
    if value.type == kind:
        return value
    if isinstance(value.type, ir.IntType):
        return b.zext(value, kind)
    return b.bitcast(value, kind)


def _value(b: ir.IRBuilder, value: ir.Value, kind: ir.Type) -> ir.Value:
    if value.type == kind:
        return value
    if kind == I1:
        return b.icmp_unsigned("!=", value, ir.Constant(value.type, 0))
    return b.trunc(value, kind) if isinstance(kind, ir.IntType) else b.bitcast(value, kind)


_SINCE: Final = 70
_SHARED: Final = 3
"""The address space of shared memory."""
_POINTER: Final = ir.PointerType(addrspace=_SHARED)
_SCOPES: Final[dict[ops.FenceScope, str | None]] = {
    "block": "block",
    "device": "device",
    "system": None,
}


def require_cooperation(kernel: ops.Function, arch: str) -> None:
    """Raises CodegenError for a kernel with cooperating threads on a GPU that is too old.

    Before sm_70 warps run in lockstep, without masks, and LLVM finds no instruction for most ops,
    which would abort the process.
    """
    arch_ops.require_architecture(kernel, arch)
    if archs.capability(arch) >= _SINCE:
        return
    for op in kernel.facts.ops:
        if isinstance(op, ops.Cooperation | ops.CooperationEffect):
            raise CodegenError(
                f"{kernel.name}: threads work together on GPUs from sm_{_SINCE} on, but the "
                f"architecture is {arch}"
            )


@dataclass(slots=True)
class DeviceThreads:
    """Lowers the ops of one kernel, whose entry has this name.

    `aligned`: whether the threads of a warp reach each barrier at one place, which makes it a
    little faster.  Otherwise each warp arrives when all its threads have arrived, from any place.
    """

    name: str
    aligned: bool
    count: int = 0
    dynamic: ir.GlobalVariable | None = None
    fragments: tuple[ops.Value, ...] = ()
    """Those that products of a warpgroup use in the background."""

    @classmethod
    def of(cls, kernel: ops.Function, name: str) -> DeviceThreads:
        """The threads of a kernel whose entry has this name."""
        try:
            Uniform.of(kernel)
        except Divergent:
            aligned = False
        else:
            aligned = True
        return cls(name, aligned, fragments=fragments_of(kernel))

    def lower(self, lowering: FunctionLowering, op: ThreadOp) -> None:
        """Emits an op; its result, if it has one, is defined."""
        own = _OWN.get(type(op))
        found = own(self, lowering, op) if own else _OTHERS[type(op)](lowering, op)
        if found is not None:
            lowering.values[op.result] = found  # type: ignore[union-attr]

    def shared(self, lowering: FunctionLowering, op: ops.Shared) -> ir.Value:
        """The static memory of an op.

        It has external linkage, although no other module uses it: LLVM assumes that barriers do not
        change internal memory.
        """
        type_ = op.result.tensor
        count = 1
        for size, stride in zip(type_.shape, type_.strides, strict=True):
            assert isinstance(size, int) and isinstance(stride, int)
            count += (size - 1) * stride
        kind = ir.ArrayType(memory_type(type_.dtype), count)
        memory = self.memory(lowering, kind, f"{self.name}_shared_{self.count}", type_.align)
        memory.initializer = ir.Constant(kind, ir.Undefined)
        self.count += 1
        return memory

    def dynamic_shared(self, lowering: FunctionLowering, op: ops.DynamicShared) -> ir.Value:
        """The dynamic memory from a byte on."""
        if self.dynamic is None:
            kind, name = ir.ArrayType(I8, 0), f"{self.name}_dynamic"
            self.dynamic = self.memory(lowering, kind, name, ops.MAX_SHARED_ALIGN)
            self.dynamic.linkage = "external"
        return lowering.b.gep(self.dynamic, [ir.Constant(I64, op.offset)], source_etype=I8)

    def memory(
        self, lowering: FunctionLowering, kind: ir.Type, name: str, align: int
    ) -> ir.GlobalVariable:
        variable = ir.GlobalVariable(lowering.emitter.module, kind, name, addrspace=_SHARED)
        variable.align = align
        variable.type = _POINTER
        return variable

    def barrier(self, lowering: FunctionLowering, op: ops.Barrier) -> None:
        values, form = (
            lowering.values,
            "barrier.cta.sync.aligned" if self.aligned else "barrier.cta.sync",
        )
        number = ir.Constant(I32, 0) if op.id is None else values[op.id]
        if op.count is None:
            _call(lowering, f"{form}.all", VOID, [number])
        else:
            _call(lowering, f"{form}.count", VOID, [number, values[op.count]])

    def arrive(self, lowering: FunctionLowering, op: ops.BarrierArrive) -> None:
        form = "barrier.cta.arrive.aligned" if self.aligned else "barrier.cta.arrive"
        numbers = [lowering.values[value] for value in (op.id, op.count)]
        arch_ops.call(lowering, f"{form}.count", VOID, numbers)

    def control(self, lowering: FunctionLowering, op: ops.Control) -> None:
        if op.kind in warpgroups.HOLDING:
            warpgroups.control(lowering, self.fragments, op)
        else:
            arch_ops.control(lowering, op)


def _call(
    lowering: FunctionLowering, name: str, result: ir.Type, given: Sequence[ir.Value]
) -> ir.Value:
    e = lowering.emitter
    kind = ir.FunctionType(result, [value.type for value in given])
    return e.call(e.symbol(f"llvm.nvvm.{name}", kind), list(given))


def _warp_barrier(lowering: FunctionLowering, op: ops.WarpBarrier) -> None:
    _call(lowering, "bar.warp.sync", VOID, [lowering.values[op.mask]])


def _fence(lowering: FunctionLowering, op: ops.Fence) -> None:
    lowering.b.fence("acq_rel", _SCOPES[op.scope])


def _shuffle(lowering: FunctionLowering, op: ops.Shuffle) -> ir.Value:
    """A shuffle of the value's words, of 32 bits each."""
    values = lowering.values
    mask, lane, clamp = (values[each] for each in (op.mask, op.lane, op.clamp))

    def one(word: ir.Value) -> ir.Value:
        return _call(lowering, f"shfl.sync.{op.op}.i32", I32, [mask, word, lane, clamp])

    b, value = lowering.b, values[op.value]
    kind = value.type
    if kind == F32:
        return b.bitcast(one(b.bitcast(value, I32)), F32)
    if kind == F64 or kind == I64:
        return b.bitcast(_of_halves(b, [one(w) for w in _halves(b, b.bitcast(value, I64))]), kind)
    if kind == I32:
        return one(value)
    return b.trunc(one(b.zext(value, I32)), kind)


def _halves(b: ir.IRBuilder, value: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The lower and the upper word."""
    return b.trunc(value, I32), b.trunc(b.lshr(value, ir.Constant(I64, 32)), I32)


def _of_halves(b: ir.IRBuilder, words: Sequence[ir.Value]) -> ir.Value:
    low, high = (b.zext(word, I64) for word in words)
    return b.or_(low, b.shl(high, ir.Constant(I64, 32)))


def _vote(lowering: FunctionLowering, op: ops.Vote) -> ir.Value:
    given = [lowering.values[op.mask], lowering.values[op.predicate]]
    return _call(lowering, f"vote.{op.op}.sync", I32 if op.op == "ballot" else I1, given)


def _match(lowering: FunctionLowering, op: ops.Match) -> ir.Value:
    b, value = lowering.b, lowering.values[op.value]
    bits = 64 if dtype_of(op.value).bits == 64 else 32
    given = [lowering.values[op.mask], b.bitcast(value, ir.IntType(bits))]
    if op.op == "any":
        return _call(lowering, f"match.any.sync.i{bits}", I32, given)
    both = ir.LiteralStructType([I32, I1])
    return b.extract_value(_call(lowering, f"match.all.sync.i{bits}p", both, given), 0)


_Own = Callable[[DeviceThreads, FunctionLowering, Any], ir.Value | None]
_OWN: Final[dict[type[ops.Op], _Own]] = {
    ops.Shared: DeviceThreads.shared,
    ops.DynamicShared: DeviceThreads.dynamic_shared,
    ops.Barrier: DeviceThreads.barrier,
    ops.BarrierArrive: DeviceThreads.arrive,
    ops.Control: DeviceThreads.control,
}
"""The ops whose code depends on the kernel."""
_OTHERS: Final[dict[type[ops.Op], EmitOp]] = {
    ops.WarpBarrier: _warp_barrier,
    ops.Fence: _fence,
    ops.Shuffle: _shuffle,
    ops.Vote: _vote,
    ops.Match: _match,
    **arch_ops.EMITTERS,
    **atomics.EMITTERS,
    ops.InlinePtx: _inline_ptx,
    **map_ops.EMITTERS,
    **warpgroups.EMITTERS,
}
scalars.require_all(
    "codegen.cuda.threads",
    [kind.__name__ for kind in (*_OWN, *_OTHERS)],
    [kind.__name__ for kind in get_args(ThreadOp)],
)
