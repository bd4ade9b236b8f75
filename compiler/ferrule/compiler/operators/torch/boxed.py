"""The boxed kernel of an operator: one function in LLVM IR that torch's dispatcher calls.

`void kernel(u64* stack, u64 inputs, u64 outputs)` takes the arguments off torch's stack, calls the
compiled function, and puts the results there. It holds no Python and no GIL. It owns each tensor
on the stack and releases it on every way out; an error leaves as the C++ exception that torch
turns into RuntimeError, so the functions have unwind tables.

In this order: refuse what autograd forbids, describe the tensors, count the writes, make the
tensors of the results, call, take the results.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from llvmlite import ir

from ferrule import specs
from ferrule.compiler.operators.torch import allocation
from ferrule.compiler.operators.torch.plans import (
    Argument,
    Kind,
    Plan,
    keys_of,
    may_overlap,
    no_gradient,
    overlaps,
    result_specs,
    unfit,
)
from ferrule.compiler.operators.torch.symbols import (
    BUMP_VERSION,
    CHECK,
    CURRENT_STREAM,
    DELETE_TENSOR,
    GRAD_IS_ENABLED,
    PERSONALITY,
    REQUIRES_GRAD,
    RESUME,
    torch_function,
    used,
)
from ferrule.compiler.operators.torch.unboxing import DESCRIBE, WORD_KINDS, define_describe, unbox
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import (
    ANY,
    BYTE_ARRAY,
    DLTENSOR,
    ERROR_CELL,
    I8,
    I32,
    I64,
    OBJECT,
    PACKED,
    PTR,
    SEQ_OBJECT,
    VOID,
)
from ferrule.specs import params
from ferrule.specs.deferred import dataclass

KERNEL: Final = "__tvm_ffi_torch_op"

_RUN: Final = "ferrule_run"
_RAISE: Final = "ferrule_raise"
# Exceptions of C++ pass through these functions: without tables the process would end.
_THROWS: Final = ("uwtable",)
# On the stack, since the exception copies it: a longer message is cut.
_TEXT_ROOM: Final = 4096


@dataclass(frozen=True, slots=True)
class Boxed:
    """The kernel's module: its text, and the functions of libtorch that it needs."""

    text: str
    needed: tuple[str, ...]
    probes: bool


def why_not_boxed(plan: Plan) -> str | None:
    """Why an operator's kernel is made of Python functions; None if it can be a boxed one."""
    for argument in plan.arguments:
        if argument.kind not in WORD_KINDS:
            return f"{argument.name} is a {argument.kind.value}"
    if any(kind is Kind.TEXT for kind in plan.results):
        return "it returns text"
    if plan.made and len(plan.candidates) > 1:
        return "the candidate decides what it makes"
    if plan.made and allocation.plain_bindings(plan) is None:
        return "the sizes of what it makes are no sizes of its tensors"
    if len(plan.candidates) > 1 and Kind.TENSOR in plan.results:
        return "the candidate decides what it returns"
    return None


def boxed_module(plan: Plan, target: str, triple: str) -> Boxed:
    """The module of a plan's kernel, which calls the TVM-FFI function with the symbol `target`."""
    e = Emitter("ferrule.torch_op", triple)
    probes = emit_boxed(e, plan, target)
    return Boxed(e.text(), (*used(e), RESUME), probes)


def emit_boxed(e: Emitter, plan: Plan, target: str) -> bool:
    """Define the kernel in a module; whether `allocation.PROBE` must run before its calls."""
    define_describe(e, only_cpu=keys_of(plan) == ("cpu",))
    returns = Kind.TENSOR in plan.results
    if returns:
        allocation.define_allocator(e)
    run = _define_run(e, plan, target)
    _define_kernel(e, plan, run, _define_raise(e))
    return returns


def _define_kernel(e: Emitter, plan: Plan, run: ir.Function, raise_: ir.Function) -> None:
    names = ("stack", "inputs", "outputs")
    with e.define(KERNEL, VOID, [PTR, I64, I64], names=names, attributes=_THROWS) as function:
        function.attributes.personality = _personality(e)
        stack = function.args[0]
        tensors = list(plan.tensors())
        handles = e.alloca(PTR, max(len(tensors), 1), name="handles")
        args = e.alloca(ANY, max(len(plan.signature.arguments), 1), name="args")
        outputs = e.alloca(I64, max(len(plan.results) + len(plan.made), 1), name="results")
        unbox(e, plan, stack, args, handles)
        done, thrown = e.block("done"), e.block("thrown")
        status = e.builder.invoke(run, [args, handles, outputs], done, thrown, name="status")
        with e.within(thrown):
            kind = ir.LiteralStructType([PTR, I32])
            pad = e.builder.landingpad(kind, cleanup=True)
            _release(e, tensors, handles)
            e.builder.resume(pad)
        e.at(done)
        _release(e, tensors, handles)
        with e.if_then(e.icmp("ne", status, e.const_i32(0)), likely=False):
            e.call(raise_, [])
            e.builder.unreachable()
        for i in range(len(plan.results) + len(plan.made)):
            e.store(e.load(e.index(outputs, I64, i), I64), e.index(stack, I64, i))
        e.ret()


def _personality(e: Emitter) -> ir.Function:
    function = torch_function(e, PERSONALITY)
    function.type = PTR  # llvmlite would print a typed pointer, which LLVM no longer accepts
    return function


def _release(e: Emitter, tensors: list[Argument], handles: ir.Value) -> None:
    for i, argument in enumerate(tensors):
        handle = e.load(e.index(handles, PTR, i), PTR)
        if argument.optional:
            with e.if_then(e.not_(e.is_null(handle))):
                e.call(torch_function(e, DELETE_TENSOR), [handle])
        else:
            e.call(torch_function(e, DELETE_TENSOR), [handle])


def _define_raise(e: Emitter) -> ir.Function:
    """Throws the error that is raised in tvm-ffi's sense, with its message."""
    attributes = ("cold", "noinline", "noreturn", *_THROWS)
    with e.define(_RAISE, VOID, [], linkage="internal", attributes=attributes) as function:
        place = e.alloca(PTR)
        e.store(e.null(), place)
        e.call("TVMFFIErrorMoveFromRaised", [place])
        error = e.load(place, PTR)
        # A throw does not come back, so the error is released before, and its text is copied.
        text = e.alloca(I8, _TEXT_ROOM, name="text")
        with e.if_then(e.is_null(error)):
            throw(e, e.cstring("the function failed without an error"))
        cell = e.index(error, I8, OBJECT.size)
        message = e.field_ptr(cell, ERROR_CELL, "message")
        size = e.load_field(message, BYTE_ARRAY, "size")
        most = e.const_i64(_TEXT_ROOM - 1)
        size = e.select(e.icmp("ult", size, most), size, most)
        e.call("memcpy", [text, e.load_field(message, BYTE_ARRAY, "data"), size])
        e.store(ir.Constant(I8, 0), e.index(text, I8, size))
        e.call("TVMFFIObjectDecRef", [error])
        throw(e, text)
        e.builder.unreachable()
    return function


def throw(e: Emitter, text: ir.Value) -> None:
    """Throw an exception of C++ that torch turns into RuntimeError, with this text."""
    empty = e.cstring("")
    arguments = [e.const_i1(False), empty, empty, e.const_i32(0), text]
    e.call(torch_function(e, CHECK), arguments)


def _define_run(e: Emitter, plan: Plan, target: str) -> ir.Function:
    """`i32 run(ptr args, ptr handles, ptr outputs)`: 0, or -1 after an error was raised."""
    names = ("args", "handles", "outputs")
    with e.define(
        _RUN, I32, [PTR] * 3, names=names, linkage="internal", attributes=("noinline", *_THROWS)
    ) as function:
        _Run(e, plan, *function.args).emit(target)
    return function


@dataclass(slots=True, eq=False)
class _Run:
    """The parts of a kernel between taking the arguments and giving the results."""

    e: Emitter
    plan: Plan
    args: ir.Value
    handles: ir.Value
    outputs: ir.Value

    def emit(self, target: str) -> None:
        e, plan = self.e, self.plan
        if plan.mutates:
            self._refuse_gradients()
        tensors = self._describe()
        self._count_writes()
        self._make(tensors)
        value = e.alloca(ANY, name="value")
        e.store_field(value, ANY, "head", e.const_i64(TypeIndex.NONE))
        e.store_field(value, ANY, "v_int64", e.const_i64(0))
        count = e.const_i32(len(plan.signature.arguments))
        function = e.symbol(target, PACKED)
        with self._environment():
            status = e.call(function, [e.null(), self.args, count, value], "status")
        with e.if_then(e.icmp("ne", status, e.const_i32(0)), likely=False):
            self._fail()
        self._take(value)
        e.ret(e.const_i32(0))

    def _tensors(self) -> Iterator[tuple[Argument, ir.Value]]:
        """The arguments that are tensors, and their handles."""
        for i, argument in enumerate(self.plan.tensors()):
            yield argument, self.e.load(self.e.index(self.handles, PTR, i), PTR)

    @contextmanager
    def _present(self, argument: Argument, handle: ir.Value) -> Iterator[None]:
        if not argument.optional:
            yield
            return
        with self.e.if_then(self.e.not_(self.e.is_null(handle))):
            yield

    def _error(self, kind: str, message: str) -> None:
        e = self.e
        e.call("TVMFFIErrorSetRaisedFromCStr", [e.cstring(kind), e.cstring(message)])

    def _refuse_gradients(self) -> None:
        """An operator that writes its arguments has no gradient, as torch's `out=` has none."""
        e = self.e
        for argument, handle in self._tensors():
            with self._present(argument, handle):
                implementation = e.load(handle, PTR)
                needs = e.call(torch_function(e, REQUIRES_GRAD), [implementation])
                with e.if_then(needs, likely=False):
                    enabled = e.call(torch_function(e, GRAD_IS_ENABLED), [])
                    with e.if_then(enabled):
                        self._error("RuntimeError", no_gradient(self.plan, argument))
                        e.ret(e.const_i32(-1))

    def _describe(self) -> dict[int, ir.Value]:
        e = self.e
        found: dict[int, ir.Value] = {}
        for argument, handle in self._tensors():
            dl = found[argument.position] = e.alloca(DLTENSOR, name=argument.name)
            with self._present(argument, handle):
                self._describe_one(argument, handle, dl)
        return found

    def _describe_one(self, argument: Argument, handle: ir.Value, dl: ir.Value) -> None:
        e = self.e
        code = e.call(e.module.globals[DESCRIBE], [handle, dl])
        with e.if_then(e.icmp("ne", code, e.const_i32(0)), likely=False):
            message = (
                f"{self.plan.name}: {argument.name} is None, or a tensor without memory of its own"
            )
            self._error("ValueError", message)
            e.ret(e.const_i32(-1))
        if argument.written and may_overlap(self.plan, argument):
            self._refuse_overlap(argument, dl)
        e.store_field(e.index(self.args, ANY, argument.position), ANY, "v_ptr", dl)

    def _refuse_overlap(self, argument: Argument, dl: ir.Value) -> None:
        """Several elements in one place: torch writes to no such tensor."""
        e = self.e
        shape, strides = (e.load_field(dl, DLTENSOR, name) for name in ("shape", "strides"))
        shares, empty = (e.alloca(I8, name=name) for name in ("shares", "empty"))
        for flag in (shares, empty):
            e.store(ir.Constant(I8, 0), flag)
        with e.loop(e.builder.zext(e.load_field(dl, DLTENSOR, "ndim"), I64)) as i:
            size, stride = (e.load(e.index(each, I64, i), I64) for each in (shape, strides))
            several = e.icmp("sgt", size, e.const_i64(1))
            together = e.binary("and", several, e.icmp("eq", stride, e.const_i64(0)))
            for flag, found in ((shares, together), (empty, e.icmp("eq", size, e.const_i64(0)))):
                e.store(e.binary("or", e.load(flag, I8), e.builder.zext(found, I8)), flag)
        # Where one of the sizes is 0 there are no elements.
        wrong = e.icmp("ugt", e.load(shares, I8), e.load(empty, I8))
        with e.if_then(wrong, likely=False):
            self._error("ValueError", overlaps(self.plan, argument))
            e.ret(e.const_i32(-1))

    def _count_writes(self) -> None:
        for argument, handle in self._tensors():
            if argument.written:
                with self._present(argument, handle):
                    self.e.call(torch_function(self.e, BUMP_VERSION), [handle])

    def _make(self, tensors: dict[int, ir.Value]) -> None:
        """The tensors of `made`, their handles in `outputs` behind the results."""
        e, plan = self.e, self.plan
        if not plan.made:
            return
        for i in range(len(plan.made)):
            e.store(e.const_i64(0), self._made_at(i))
        sizes = allocation.symbol_values(e, plan, tensors, self._refuse_size)
        like = next(handle for argument, handle in self._tensors() if not argument.optional)
        for i, each in enumerate(plan.made):
            failed = allocation.make_tensor(e, each, sizes, like, self._made_at(i))
            with e.if_then(failed, likely=False):
                why = "a size is negative, or there is no memory"
                text = f"{plan.name}: torch cannot make {each.param.name}: {why}"
                self._error("RuntimeError", text)
                self._fail()
            dl = e.alloca(DLTENSOR, name=each.param.name)
            e.call(e.module.globals[DESCRIBE], [e.load(self._made_at(i), PTR), dl])
            arg = e.index(self.args, ANY, each.position)
            e.store_field(arg, ANY, "head", e.const_i64(TypeIndex.DLTENSOR_PTR))
            e.store_field(arg, ANY, "v_ptr", dl)

    def _made_at(self, i: int) -> ir.Value:
        return self.e.index(self.outputs, I64, len(self.plan.results) + i)

    def _refuse_size(self, flag: ir.Value) -> None:
        with self.e.if_then(flag, likely=False):
            text = f"{self.plan.name}: a size of a result leaves the range of a 64-bit integer"
            self._error("ValueError", text)
            self._fail()

    def _fail(self) -> None:
        """Release the new tensors, and end with the raised error."""
        e = self.e
        for i in range(len(self.plan.made)):
            handle = e.load(self._made_at(i), PTR)
            with e.if_then(e.not_(e.is_null(handle))):
                e.call(torch_function(e, DELETE_TENSOR), [handle])
        e.ret(e.const_i32(-1))

    @contextmanager
    def _environment(self) -> Iterator[None]:
        """torch's allocator and current stream, as the function asks for them."""
        e = self.e
        returns = Kind.TENSOR in self.plan.results
        old = e.alloca(PTR, name="allocator") if returns else None
        if old is not None:
            e.store(e.null(), old)
            allocation.set_allocator(e, old)
        with self._stream():
            yield
        if old is not None:
            allocation.reset_allocator(e, old)

    @contextmanager
    def _stream(self) -> Iterator[None]:
        if "cuda" not in keys_of(self.plan):
            yield
            return
        e = self.e
        argument = next(each for each in self.plan.tensors() if not each.optional)
        dl = e.load_field(e.index(self.args, ANY, argument.position), ANY, "v_ptr")
        stream, old = e.alloca(PTR, name="stream"), e.alloca(PTR, name="outer")
        for place in (stream, old):
            e.store(e.null(), place)
        device = [e.load_field(dl, DLTENSOR, name) for name in ("device_type", "device_id")]
        e.call(torch_function(e, CURRENT_STREAM), [device[1], stream])
        e.call("TVMFFIEnvSetStream", [*device, e.load(stream, PTR), old])
        yield
        e.call("TVMFFIEnvSetStream", [*device, e.load(old, PTR), e.null()])

    def _take(self, value: ir.Value) -> None:
        """The results, from the returned value to `outputs`."""
        e, plan = self.e, self.plan
        if not plan.results:
            return
        for i in range(len(plan.results)):
            e.store(e.const_i64(0), e.index(self.outputs, I64, i))
        results = result_specs(plan.candidates[0])
        items = value
        if plan.packs:
            array = e.load_field(value, ANY, "v_obj")
            items = e.load_field(array, SEQ_OBJECT, "cell.data")
        flags = [self._take_one(e.index(items, ANY, i), i, each) for i, each in enumerate(results)]
        self._let_go(value)
        for flag, kind in zip(flags, plan.results, strict=True):
            if flag is None:
                continue
            with e.if_then(flag, likely=False):
                self._error("RuntimeError", unfit(plan, kind))
                self._drop_results()
                self._fail()

    def _take_one(self, item: ir.Value, i: int, result: specs.Param) -> ir.Value | None:
        """Stores a result; whether torch cannot take it, None where it always can."""
        e, place = self.e, self.e.index(self.outputs, I64, i)
        if isinstance(result, params.Tensor):
            return allocation.take_tensor(e, item, result.dtype, place)
        e.store(e.load_field(item, ANY, "v_int64"), place)
        if self.plan.results[i] is not Kind.INT:
            return None
        # A uint64 that an int64 cannot hold is an object of tvm-ffi, and the word its address.
        index = e.load_field(item, ANY, "type_index")
        return e.icmp("sge", index, e.const_i32(TypeIndex.OBJECT))

    def _let_go(self, value: ir.Value) -> None:
        """Release the returned value, if it is an object."""
        e = self.e
        index = e.load_field(value, ANY, "type_index")
        with e.if_then(e.icmp("sge", index, e.const_i32(TypeIndex.OBJECT))):
            e.call("TVMFFIObjectDecRef", [e.load_field(value, ANY, "v_obj")])

    def _drop_results(self) -> None:
        e = self.e
        for i, kind in enumerate(self.plan.results):
            if kind is Kind.TENSOR:
                handle = e.load(e.index(self.outputs, I64, i), PTR)
                with e.if_then(e.not_(e.is_null(handle))):
                    e.call(torch_function(e, DELETE_TENSOR), [handle])
