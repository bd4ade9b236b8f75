"""Calls of tvm-ffi functions by a host function: arguments, the call, and the result.

The arguments are an array of TVMFFIAny on the stack.  Objects that are made only for the call,
strings and tensors of the caller, are in a table beside it, which is released after the call, also
after an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import Fault
from ferrule.compiler.host import owned as table
from ferrule.compiler.host import tensors
from ferrule.compiler.support.calling import TYPES, Status, Wanted, failures
from ferrule.compiler.support.entries import (
    FIND,
    FIND_IMPORTED,
    INVOKE,
    PASS_OBJECT,
    PASS_TENSOR,
    PASS_TEXT,
    TAKE,
    UNSIGNED,
)
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.codegen.host import objects, receiving
from ferrule.language.codegen.host.allocation import Places
from ferrule.language.codegen.host.linking import wrapper_part
from ferrule.language.ir import ops
from ferrule.language.ir.rules.calls import CALL_OPERANDS
from ferrule.runtime.abi import LIBRARY_CONTEXT, DeviceType, TypeIndex
from ferrule.runtime.llvm.emitter import LIKELY, Emitter
from ferrule.runtime.llvm.layouts import ANY, I1, I32, I64, PACKED, PTR
from ferrule.specs.deferred import dataclass

_UNSIGNED: Final = ir.FunctionType(I32, [I64, PTR, PTR])
_MADE: Final = ("text", "bytes", "tensor", "unsigned")
_PLAIN: Final[dict[ops.ArgumentKind, TypeIndex]] = {
    "none": TypeIndex.NONE,
    "bool": TypeIndex.BOOL,
    "int": TypeIndex.INT,
    "float": TypeIndex.FLOAT,
    "dtype": TypeIndex.DATA_TYPE,
    "device": TypeIndex.DEVICE,
    "pointer": TypeIndex.OPAQUE_PTR,
}


@dataclass(frozen=True, slots=True)
class _Argument:
    """One argument: its kind, its values, and its destination."""

    kind: ops.ArgumentKind
    values: tuple[ops.Value, ...]
    item: ir.Value
    owned: ir.Value | None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The context of a host function's calls: the device of parameter tensors, and the places for
    results, None if there are none."""

    device: DeviceType
    index: ir.Value
    places: Places | None = None


def emit_call(
    lowering: FunctionLowering, op: ops.Outgoing | ops.ObjectOp, around: Surroundings
) -> None:
    """Emits an op that calls or receives, or that reads containers and objects."""
    match op:
        case ops.Call():
            _Call(lowering, op, around).emit()
        case ops.CallBody():
            receiving.emit_call_body(lowering, op, around.index, around.places)
        case ops.Receive():
            receiving.emit_receive(lowering, op)
        case ops.Received():
            receiving.emit_received(lowering, op)
        case _:
            objects.emit_object_op(lowering, op, around.places)


@dataclass(slots=True)
class _Call:
    """One call under construction."""

    lowering: FunctionLowering
    op: ops.Call
    around: Surroundings
    given: ir.Value | None = None
    """The arguments; the messages of a failure show the last one."""

    @property
    def e(self) -> Emitter:
        return self.lowering.emitter

    def emit(self) -> None:
        e, op = self.e, self.op
        count = len(op.kinds)
        made = sum(map(self._makes, op.kinds))
        items = e.alloca(ANY, max(1, count), name="items")
        owned = e.alloca(PTR, max(1, made), name="owned")
        table.clear(e, owned, made)
        place, result = e.alloca(I32, name="status"), self._result()
        behind = e.block("behind")
        for argument in self._arguments(items, owned):
            self._pass(argument, place, behind)
        e.store(self._invoke([items, e.const_i32(count), result], place, behind), place)
        e.branch(behind)
        e.at(behind)
        # Before the check, which ends the function if the call has failed.
        if made:
            table.release(e, owned, made)
        self._check(e.load(place, I32))
        self._take(result)

    def _makes(self, kind: ops.ArgumentKind) -> bool:
        """Whether an argument is made only for the call; a direct call lends its tensors
        unchanged."""
        return kind in _MADE and not (kind == "tensor" and self._is_direct())

    def _is_direct(self) -> bool:
        return isinstance(self.op.callee, ops.Extern | ops.Linked)

    def _result(self) -> ir.Value:
        """The place for the result, None at first."""
        e = self.e
        if self.op.wanted == "any":
            assert self.around.places is not None, "a host function without places for values"
            return self.around.places.take_values(e)
        result = e.alloca(ANY, name="result")
        # A callee of tvm-ffi writes its result only if it has one, and expects None there.
        for name in ("head", "v_int64"):
            e.store_field(result, ANY, name, e.const_i64(0))
        return result

    def _invoke(self, arguments: list[ir.Value], place: ir.Value, behind: ir.Block) -> ir.Value:
        """The call itself; returns its status."""
        e = self.e
        match self.op.callee:
            case ops.Extern(link=link):
                symbol = link.symbol
            case ops.Linked() as callee:
                symbol = wrapper_part(callee).symbol
            case ops.Setter() as setter:
                self.given = arguments[0]
                return objects.set_field(e, setter, arguments[0])
            case ops.Keep():
                return objects.keep(e, arguments[0], arguments[2])
            case ops.DTypeText():
                return objects.dtype_text(e, arguments[0], arguments[2])
            case _:
                return self._support(INVOKE, [self._callee(place, behind), *arguments])
        status = e.call(e.symbol(symbol, PACKED), [e.null(), *arguments], "failed")
        failed = e.icmp("ne", status, e.const_i32(0))
        return e.select(failed, e.const_i32(Status.RAISED), e.const_i32(Status.DONE))

    def _take(self, result: ir.Value) -> None:
        """Converts the result to the value of the op."""
        e, op = self.e, self.op
        if op.wanted == "any":
            self.lowering.values[op.result] = result
            return
        out = e.alloca(I64, name="number")
        e.store(e.const_i64(0), out)
        wanted = e.const_i32(Wanted[op.wanted.upper()])
        self._check(self._support(TAKE, [result, wanted, out, self.lowering.fault_values]))
        kind = ir.DoubleType() if op.wanted == "float" else I64
        self.lowering.values[op.result] = e.load(out, kind, name=op.result.hint)

    def _arguments(self, items: ir.Value, owned: ir.Value) -> Iterator[_Argument]:
        values, made = iter(self.op.arguments), 0
        for position, kind in enumerate(self.op.kinds):
            given = tuple(next(values) for _ in CALL_OPERANDS[kind])
            item = self.e.index(items, ANY, position)
            place = self.e.index(owned, PTR, made) if self._makes(kind) else None
            made += self._makes(kind)
            yield _Argument(kind, given, item, place)

    def _support(self, name: str, arguments: list[ir.Value]) -> ir.Value:
        return self.e.call(self.e.symbol(name, TYPES[name]), arguments, "status")

    def _callee(self, place: ir.Value, behind: ir.Block) -> ir.Value:
        """The handle of the function; that of a name is cached in a variable of the object."""
        e, callee = self.e, self.op.callee
        if isinstance(callee, ops.Method):
            found = e.alloca(PTR, name="method")
            self._go_on(objects.find_method(e, callee, found), place, behind)
            return e.load(found, PTR)
        if isinstance(callee, ops.Value):
            return self.lowering.values[callee]
        assert isinstance(callee, str | ops.Imported)
        called = callee if isinstance(callee, str) else callee.name
        name = f"ferrule.known.{called}"
        known = e.builder.module.globals.get(name)
        if known is None:
            known = ir.GlobalVariable(e.builder.module, PTR, name)
            known.linkage, known.initializer = "internal", ir.Constant(PTR, None)
        found = e.alloca(PTR, name="callee")
        arguments = [known, e.cstring(called), found]
        if isinstance(callee, ops.Imported):
            self._go_on(self._support(FIND_IMPORTED, [self._context(), *arguments]), place, behind)
        else:
            self._go_on(self._support(FIND, arguments), place, behind)
        return e.load(found, PTR)

    def _context(self) -> ir.Value:
        """The variable in which tvm-ffi stores the module of the library; the library's objects
        share it."""
        module = self.e.builder.module
        context = module.globals.get(LIBRARY_CONTEXT)
        if context is None:
            context = ir.GlobalVariable(module, PTR, LIBRARY_CONTEXT)
            context.linkage, context.initializer = "weak", ir.Constant(PTR, None)
        return context

    def _go_on(self, status: ir.Value, place: ir.Value, behind: ir.Block) -> None:
        """Continue if a step succeeded; else branch to the end of the call."""
        e, passed = self.e, self.e.block("passed")
        e.store(status, place)
        e.cond_branch(e.icmp("eq", status, e.const_i32(0)), passed, behind, LIKELY)
        e.at(passed)

    def _pass(self, argument: _Argument, place: ir.Value, behind: ir.Block) -> None:
        e, item, owned = self.e, argument.item, argument.owned
        values = [self.lowering.values[value] for value in argument.values]
        match argument.kind:
            case "text" | "bytes":
                is_text = ir.Constant(I1, argument.kind == "text")
                status = self._support(PASS_TEXT, [*values, is_text, item, owned])
            case "tensor" if argument.values[0] in self.lowering.objects:
                handle = self.lowering.objects[argument.values[0]]
                status = self._support(PASS_OBJECT, [handle, item])
            case "tensor" if self._is_direct():
                prototype = self._prototype(argument.values[0])
                e.store_field(item, ANY, "head", e.const_i64(TypeIndex.DLTENSOR_PTR))
                e.store_field(item, ANY, "v_ptr", prototype)
                return
            case "tensor":
                prototype = self._prototype(argument.values[0])
                status = self._support(PASS_TENSOR, [prototype, item, owned])
            case "object":
                status = self._support(PASS_OBJECT, [*values, item])
            case "unsigned":
                assert owned is not None, "a large number without a place for its object"
                self._plain(item, "int", values)
                status = self._unsigned(values[0], item, owned)
            case "any":
                for name in ("head", "v_int64"):
                    e.store_field(item, ANY, name, e.load_field(values[0], ANY, name))
                return
            case kind:
                self._plain(item, kind, values)
                return
        self._go_on(status, place, behind)

    def _unsigned(self, value: ir.Value, item: ir.Value, owned: ir.Value) -> ir.Value:
        """A number of 2**63 or more becomes an object; returns the status of making it."""
        e, place = self.e, self.e.alloca(I32, name="status")
        e.store(e.const_i32(Status.DONE), place)
        with e.if_then(e.icmp("slt", value, e.const_i64(0)), likely=False):
            what = e.cstring(f"an argument of {shown(self.op.callee)}")
            failed = e.call(e.symbol(UNSIGNED, _UNSIGNED), [value, item, what])
            raised = e.icmp("ne", failed, e.const_i32(0))
            e.store(e.select(raised, e.const_i32(Status.RAISED), e.const_i32(Status.DONE)), place)
            with e.if_then(e.not_(raised)):
                e.store(e.load_field(item, ANY, "v_ptr"), owned)
        return e.load(place, I32)

    def _plain(self, item: ir.Value, kind: ops.ArgumentKind, values: list[ir.Value]) -> None:
        e = self.e
        e.store_field(item, ANY, "head", e.const_i64(_PLAIN[kind]))
        if not values:
            e.store_field(item, ANY, "v_int64", e.const_i64(0))
            return
        value = values[0]
        if value.type in (I1, I32):
            value = e.builder.zext(value, I64)
        name = {"float": "v_float64", "pointer": "v_ptr"}.get(kind, "v_int64")
        e.store_field(item, ANY, name, value)

    def _prototype(self, tensor: ops.Value) -> ir.Value:
        """The DLTensor of a tensor parameter, or of a view of any tensor."""
        e, type_ = self.e, tensor.tensor
        shape, strides = (
            tensors.dims(e, len(dims), map(self.lowering.dim, dims), name)
            for name, dims in (("shape", type_.shape), ("strides", type_.strides))
        )
        lent = tensors.DLTensor(
            self.lowering.values[tensor],
            self.around.device,
            self.around.index,
            type_.dtype,
            len(type_.shape),
            shape,
            strides,
        )
        return lent.store(e)

    def _failures(self) -> tuple[Fault, ...]:
        """The faults behind the statuses 1, 2, …; a call of a member accepts any result."""
        op = self.op
        match op.callee:
            case ops.Method() | ops.Setter() as member:
                return objects.member_failures(member, op.location)
        return failures(shown(op.callee), op.wanted, op.location)

    def _check(self, status: ir.Value) -> None:
        """End the function with the failure of the call."""
        number = None
        if self.given is not None:
            last = self.e.index(self.given, ANY, len(self.op.kinds) - 1)
            number = self.e.field_ptr(last, ANY, "v_int64")
        self.lowering.require(status, self._failures(), "called", number)


def shown(callee: ops.Callee) -> str:
    """The name of a function in messages."""
    match callee:
        case str() | ops.Method() | ops.Setter():
            return f"`{callee}`"
        case ops.Value(hint=hint):
            return f"the function {hint}"
        case ops.Keep():
            return "a value that is kept"
        case ops.DTypeText():
            return "the name of a dtype"
    return f"`{callee.name}`"


def needs_device(program: ops.Program) -> bool:
    """Whether a program makes tensors, passes them to others, or calls a body that needs their
    device."""
    for op in program.host.facts.ops:
        match op:
            case ops.Alloc() | ops.CallDevice():
                return True
            case ops.CallBody(callee=ops.Linked(takes_device=True)):
                return True
            case ops.Call(callee=ops.Linked(takes_device=True)):
                return True
            case ops.Call(kinds=kinds) if "tensor" in kinds:
                return True
    return False
