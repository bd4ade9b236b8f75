"""The text of a program: what `inspect_ir()` shows and the golden tests compare.

Names are deterministic: a value is `%hint`, or `%hint_1` … where the hint is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ferrule.language.ir import ops, threads
from ferrule.language.ir.types import HandleType, TensorType, Type
from ferrule.language.ir.walk import is_plain
from ferrule.specs import Dim, Sym, format_dim

_INDENT: Final = "  "
_FAST: Final = {False: "", True: ".fast"}


def print_program(program: ops.Program) -> str:
    """The text of a whole program."""
    lines = [f"program @{program.name} {{"]
    for relation in program.relations:
        left, right = (format_dim(d, program.symbols) for d in (relation.left, relation.right))
        lines.append(
            f"{_INDENT}require {left} == {right}  // {relation.left_name} and {relation.right_name}"
        )
    for function in (*program.kernels, program.host):
        lines += _Printer(program.symbols).function(function)
    return "\n".join([*lines, "}", ""])


def print_type(type_: Type, symbols: dict[Sym, str]) -> str:
    """The text of a type: `float32`, or `tensor<[n0, 8]:[8, 1], float32, align 4>`."""
    if isinstance(type_, HandleType):
        return f"handle<{type_.what}>"
    if not isinstance(type_, TensorType):
        return type_.name
    shape, strides = _dims(type_.shape, symbols), _dims(type_.strides, symbols)
    space = f", {type_.space.value}" if type_.is_own or type_.is_shared else ""
    return f"tensor<[{shape}]:[{strides}], {type_.dtype.name}, align {type_.align}{space}>"


def _dims(dims: Iterable[Dim], symbols: dict[Sym, str]) -> str:
    return ", ".join(format_dim(dim, symbols) for dim in dims)


def _hints(hints: ops.LoopHints | None) -> str:
    """The text of a loop's hints: ` unroll(4) vectorize(True)`."""
    if hints is None:
        return ""
    wishes = {"unroll": hints.unroll, "vectorize": hints.vectorize}
    return "".join(f" {name}({wish})" for name, wish in wishes.items() if wish is not None)


class _Printer:
    """Prints one function; holds the names given so far."""

    def __init__(self, symbols: dict[Sym, str]) -> None:
        self.symbols = symbols
        self.names: dict[ops.Value, str] = {}
        self.taken: dict[str, int] = {}
        self.lines: list[str] = []
        self.depth = 1

    def function(self, function: ops.Function) -> list[str]:
        params = ", ".join(f"{self.define(p)}: {self.type(p.type)}" for p in function.params)
        self.line(f"{function.kind} @{function.name}({params}) {{")
        self.region(function.body)
        self.line("}")
        return self.lines

    def line(self, text: str) -> None:
        self.lines.append(_INDENT * self.depth + text)

    def type(self, type_: Type) -> str:
        return print_type(type_, self.symbols)

    def define(self, value: ops.Value) -> str:
        hint = value.hint or "v"
        name = hint
        while name in self.taken:
            self.taken[hint] += 1
            name = f"{hint}_{self.taken[hint]}"
        self.taken[name] = 0
        self.names[value] = f"%{name}"
        return self.names[value]

    def use(self, values: Sequence[ops.Value]) -> str:
        return ", ".join(self.names.get(value, f"%<undefined {value.hint}>") for value in values)

    def region(self, region: ops.Region) -> None:
        self.depth += 1
        for op in region.ops:
            self.op(op)
        if region.yields:
            self.line(f"yield {self.use(region.yields)}")
        self.depth -= 1

    def op(self, op: ops.Op) -> None:
        if is_plain(op):
            self.defined(op)
            return
        match op:
            case ops.If() | ops.For() | ops.While() | ops.Parallel():
                self.structured(op)
            case ops.Store(tensor, indices, value):
                self.line(f"store {self.use([value])}, {self.use([tensor])}[{self.use(indices)}]")
            case ops.Check(condition, fault, values, inserted):
                word = "inserted check" if inserted else "check"
                self.line(
                    f"{word} {self.use([condition])}, {fault.kind}"
                    f" {fault.message!r}({self.use(values)})"
                )
            case ops.Return(values):
                self.line(f"return {self.use(values)}")
            case ops.Barrier(number, count):
                self.line(f"barrier{self.optional('id', number)}{self.optional('count', count)}")
            case ops.WarpBarrier(mask):
                self.line(f"warp_barrier mask({self.use([mask])})")
            case ops.Fence(scope):
                self.line(f"fence {scope}")
            case ops.Mma() | ops.LoadMatrix() | ops.AsyncCopy() | ops.Control():
                self.line(self.arch(op))
            case ops.MBarrier() | ops.MBarrierWait() | ops.BulkCopy():
                self.line(self.arch(op))
            case ops.TensorCopy() | ops.BulkStore() | ops.StoreMatrix() | ops.BarrierArrive():
                self.line(self.arch(op))
            case ops.PeerStore():
                self.line(self.arch(op))
            case ops.Print(format_, values):
                self.line(f"print {format_!r}({self.use(values)})")
            case ops.Launch(kernel, grid, block, arguments, stream, smem):
                on = self.optional("stream", stream) + self.optional("smem", smem)
                on += f" cluster({self.use(op.cluster)})" if op.cluster else ""
                for name in ("priority", "completion_event", "programmatic_event"):
                    on += self.optional(name, getattr(op, name))
                on += op.options.words()
                self.line(
                    f"launch @{kernel}({self.use(arguments)})"
                    f" grid({self.use(grid)}) block({self.use(block)}){on}"
                )
            case _:
                self.defined(op)

    def defined(self, op: ops.SimpleOp) -> None:
        text = self.pure(op)
        self.line(f"{self.define(op.result)} = {text} : {self.type(op.result.type)}")

    def pure(self, op: ops.SimpleOp) -> str:
        match op:
            case ops.Constant(_, value):
                return f"constant {value!r}"
            case ops.Size(_, dim):
                return f"size {format_dim(dim, self.symbols)}"
            case ops.Special(_, register, axis):
                return f"{register} {ops.AXES[axis]}"
            case ops.Unary(_, name, operand, fast):
                return f"{name}{_FAST[fast]} {self.use([operand])}"
            case ops.Binary(_, name, lhs, rhs, fast):
                return f"{name}{_FAST[fast]} {self.use([lhs, rhs])}"
            case ops.Fma(_, x, y, z):
                return f"fma {self.use([x, y, z])}"
            case ops.Compare(_, name, lhs, rhs):
                return f"cmp {name} {self.use([lhs, rhs])}"
            case ops.Cast(_, operand):
                return f"cast {self.use([operand])}"
            case ops.Bitcast(_, operand):
                return f"bitcast {self.use([operand])}"
            case ops.Select(_, condition, on_true, on_false):
                return f"select {self.use([condition, on_true, on_false])}"
            case ops.Load(_, tensor, indices):
                return f"load {self.use([tensor])}[{self.use(indices)}]"
            case ops.Fragment():
                return "fragment"
            case ops.Alloc(_, sizes):
                return f"alloc ({self.use(sizes)})"
            case ops.Call(_, callee, kinds, arguments):
                function = self.callee(callee)
                return f"call {function}({', '.join(kinds)}; {self.use(arguments)})"
            case ops.CallBody(_, callee, arguments):
                return f"call_body @{callee.name}({self.use(arguments)})"
            case ops.Receive(_, value, _, shown):
                return f"receive {self.use([value])} as {shown!r}"
            case ops.Received(_, parts, position):
                return f"part {position} of {self.use([parts])}"
            case ops.Item(_, container, index):
                return f"item {self.use([container])}[{self.use([index])}]"
            case ops.Field(_, of, key, name):
                return f"field {self.use([of])}, {key}.{name}"
            case ops.Peek(_, source, part):
                return f"peek {part} {self.use([source])}"
            case ops.IsInstance(_, source, key):
                return f"is_instance {self.use([source])}, {key}"
            case ops.Text(_, data):
                return f"text {data!r}"
            case ops.Address(_, operand):
                return f"address {self.use([operand])}"
            case ops.CallDevice():
                return "call_device"
            case ops.View(_, tensor, indices):
                at = f"[{self.use(indices)}]" if indices else ""
                return f"view {self.use([tensor])}{at}"
            case _:
                return self.cooperation(op)

    def cooperation(self, op: ops.Cooperation) -> str:
        match op:
            case ops.Shared(_, kept):
                return "shared kept" if kept else "shared"
            case ops.DynamicShared(_, offset):
                return f"dynamic_shared {offset}"
            case ops.Shuffle(_, name, value, lane, mask, clamp):
                return (
                    f"shuffle {name} {self.use([value, lane])}"
                    f"{self.optional('mask', mask)}{self.optional('clamp', clamp)}"
                )
            case ops.Vote(_, name, predicate, mask):
                return f"vote {name} {self.use([predicate])}{self.optional('mask', mask)}"
            case ops.PeerLoad(_, source, peer):
                return f"peer_load {self.use([source, peer])}"
            case ops.MBarrierTry(_, barrier, phase):
                return f"mbarrier try {self.use([barrier, phase])}"
            case ops.Match(_, name, value, mask):
                return f"match {name} {self.use([value])}{self.optional('mask', mask)}"
            case ops.Atomic(_, name, tensor, indices, value, compare, sem, scope):
                new = self.use([value] if compare is None else [compare, value])
                at = f"{self.use([tensor])}[{self.use(indices)}]"
                return f"atomic {name} {at}, {new} {sem} {scope}"

    def arch(self, op: threads.ArchOp) -> str:
        match op:
            case ops.Mma(d, a, b, c, mask):
                return f"mma {self.use([d, a, b, c])}{self.optional('mask', mask)}"
            case ops.LoadMatrix(target, source, transposed, mask):
                form = " transposed" if transposed else ""
                given = self.use([target, source])
                return f"load_matrix{form} {given}{self.optional('mask', mask)}"
            case ops.AsyncCopy(target, source, count, cache, holds):
                form = f"{self.optional('if', holds)} {cache}"
                return f"async_copy {self.use([target, source])}, {count}{form}"
            case ops.BulkCopy(target, source, size, barrier):
                return f"bulk_copy {self.use([target, source, size, barrier])}"
            case ops.MBarrier(kind, barrier, amount, peer):
                used = [barrier] if amount is None else [barrier, amount]
                return f"mbarrier {kind} {self.use(used)}{self.optional('peer', peer)}"
            case ops.TensorCopy():
                return self.tensor_copy(op)
            case ops.PeerStore(target, value, peer):
                return f"peer_store {self.use([value, target, peer])}"
            case ops.BulkStore(target, source, size):
                return f"bulk_store {self.use([target, source, size])}"
            case ops.StoreMatrix(target, source, transposed, mask):
                form = " transposed" if transposed else ""
                given = self.use([target, source])
                return f"store_matrix{form} {given}{self.optional('mask', mask)}"
            case ops.BarrierArrive(number, count):
                return f"barrier_arrive id({self.use([number])}) count({self.use([count])})"
            case ops.MBarrierWait(barrier, phase):
                return f"mbarrier wait {self.use([barrier, phase])}"
            case ops.Control(kind, number):
                return f"{kind} {number}" if kind in ops.WITH_AMOUNT else kind

    def tensor_copy(self, op: ops.TensorCopy) -> str:
        text = f"tensor_copy {op.kind} {self.use([op.tensor])}[{self.use(op.coordinates)}]"
        for name in ("shared", "barrier", "mask"):
            text += self.optional(name, getattr(op, name))
        return f"{text} {op.boxes.tiling}"

    def callee(self, callee: ops.Callee) -> str:
        match callee:
            case str():
                return repr(callee)
            case ops.Extern(name=name):
                return f"extern @{name}"
            case ops.Imported(name=name):
                return f"imported @{name}"
            case ops.Linked(name=name):
                return f"linked @{name}"
            case ops.Method():
                return f"method {callee}"
            case ops.Setter():
                return f"setter {callee}"
            case ops.Keep():
                return "keep"
            case ops.DTypeText():
                return "dtype_text"
        return self.use([callee])

    def optional(self, what: str, value: ops.Value | None) -> str:
        return "" if value is None else f" {what}({self.use([value])})"

    def structured(self, op: ops.If | ops.For | ops.While | ops.Parallel) -> None:
        match op:
            case ops.If(results, condition, then, otherwise):
                self.open(results, f"if {self.use([condition])}", then)
                if otherwise.ops or otherwise.yields:
                    self.line("} else {")
                    self.region(otherwise)
            case ops.For(results, index, start, stop, step, initial, carried, body, hints):
                bounds = f"{self.use([start])} to {self.use([stop])} step {self.use([step])}"
                head = f"for {self.define(index)} = {bounds}{self.carry(carried, initial)}"
                head += _hints(hints)
                self.open(results, head, body)
            case ops.While(results, initial, carried, test, body):
                self.open(results, f"while{self.carry(carried, initial)}", test)
                self.line("} do {")
                self.region(body)
            case ops.Parallel(indices, extents, body):
                names = ", ".join(self.define(index) for index in indices)
                self.open((), f"parallel ({names}) < ({self.use(extents)})", body)
        self.line("}")

    def open(self, results: Sequence[ops.Value], head: str, body: ops.Region) -> None:
        """The first line of an op with regions, and its first region."""
        names = ", ".join(self.define(result) for result in results)
        self.line(f"{names} = {head} {{" if names else f"{head} {{")
        self.region(body)

    def carry(self, carried: Sequence[ops.Value], initial: Sequence[ops.Value]) -> str:
        if not carried:
            return ""
        pairs = zip(carried, initial, strict=True)
        return f" carry({', '.join(f'{self.define(c)} = {self.use([i])}' for c, i in pairs)})"
