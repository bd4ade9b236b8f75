"""`Call`, the base of all conventions: the body under construction, and the values in it.

The wrapper checks all arguments and calls a body, see `artefacts.Body`; a convention writes the
code of the body.  This code is straight-line: `Call.require` and `Call.refuse` end the body after
an error, and run the clean-up that was registered with `Call.undone` first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Final

from llvmlite import ir

from ferrule.compiler import halves
from ferrule.compiler.artefacts import Fault, Part, literal
from ferrule.compiler.conventions.floats import float_value, same_float
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.cuda.launcher.launch import Launcher
from ferrule.compiler.host import tensors
from ferrule.compiler.host.flow import Flow
from ferrule.compiler.host.steps import Line, Steps
from ferrule.compiler.sizes import Sizes
from ferrule.compiler.support.allocation import NO_VIEWS, failures
from ferrule.compiler.support.entries import ALIGNMENT
from ferrule.compiler.wrapper.leaves import first_slots, leaves_of
from ferrule.runtime.abi import DeviceType
from ferrule.runtime.linking.links import Link
from ferrule.runtime.llvm.layouts import ANY, DLTENSOR, F64, I8, I32, I64, PTR, FieldType, size_of
from ferrule.specs import (
    DEVICE_CODES,
    HOST_DEVICES,
    Condition,
    Data,
    Dim,
    Param,
    Signature,
    Sym,
    Tensor,
    Uint64,
    ValueOf,
    compact_strides,
    symbols_of,
)
from ferrule.specs.conditions import (
    Aligned,
    Comparison,
    FloatComparison,
    FloatRelation,
    Junction,
    Negation,
    Present,
    format_condition,
)
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import Scalar

if TYPE_CHECKING:
    from ferrule.compiler.conventions.protocol import CallingConvention

_FLOAT_PREDICATES: Final = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


@dataclass(frozen=True, slots=True)
class _Entered:
    """A launcher on the call's device."""

    launcher: Launcher
    device: ir.Value


@dataclass(slots=True)
class Place:
    """A place on the stack for a value that exists only inside of a call, see `Out`."""

    name: str
    address: ir.Value
    param: Param
    is_written: bool = False
    is_owned: bool = False

    def check_written(self, what: str) -> None:
        """Raise ValueError if no call has got its address yet; `what` asks for the value."""
        if not self.is_written:
            raise ValueError(
                f"{what}: the Out {self.name!r} has no value before a call that lists it: put that "
                f"call first, or say initial=…"
            )


@dataclass(slots=True)
class Frames:
    """The frames of callbacks with a context: how many are still free, and the address of the
    first; and the callbacks with a context that are kept."""

    free: int
    kept: tuple[object, ...] = ()
    taken: int = 0
    first: ir.Value | None = None

    def take(self) -> int:
        """The position of the next one."""
        self.free, self.taken = self.free - 1, self.taken + 1
        return self.taken - 1


@dataclass(slots=True)
class Call(Flow):
    """The body under construction.

    `device` is the ordinal of the GPU of the call, i32, -1 without one.  `target` is the place of
    tensors without a device: "cpu" or "cuda".  `steps` is what the code does, for `inspect_ir`.
    """

    signature: Signature
    target: str
    handles: ir.Value
    device: ir.Value
    given: Mapping[int, ir.Value]
    symbols: Mapping[Sym, ir.Value]
    objects: Mapping[int, ir.Value] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)
    links: dict[Link, None] = field(default_factory=dict)
    owned: int = 0
    given_back: list[Callable[[], list[ir.Value]]] = field(default_factory=list)
    places: dict[object, Place] = field(default_factory=dict)
    code: ir.Value | None = None
    frames: Frames | None = None
    callbacks: dict[int, tuple[ir.Value, ir.Value, object]] = field(default_factory=dict)
    kept_callbacks: dict[int, ir.Value] = field(default_factory=dict)
    checks: list[Callable[[], None]] = field(default_factory=list)
    taken: list[Callable[[], None]] = field(default_factory=list)
    keeps: ir.Value | None = None
    kept: int = 0
    assumed: dict[str, None] = field(default_factory=dict)
    remarks: dict[str, bool] = field(default_factory=dict)
    steps: Steps = field(default_factory=Steps)
    _said: int = 0
    _made: list[tuple[Tensor, ir.Value]] = field(default_factory=list)
    _places: dict[int, int] = field(default_factory=dict)
    """The places of tensors that were allocated in the table of handles, by their identity."""
    _larger: list[tuple[Tensor, ir.Value]] = field(default_factory=list)
    _launchers: dict[int, Launcher] = field(default_factory=dict)
    _entered: dict[int, _Entered] = field(default_factory=dict)
    _sometimes: int = 0
    _handed: set[int] = field(default_factory=set)
    _filled: set[int] = field(default_factory=set)
    _told: set[Sym] = field(default_factory=set)
    _endings: list[Callable[[bool], None]] = field(default_factory=list)
    _given_once: set[int] = field(default_factory=set)
    numbers: set[Sym] = field(default_factory=set)
    """The symbols whose values the body computes with, or hands on."""
    described: set[Sym] = field(default_factory=set)
    """Those that it hands on as sizes and strides of a tensor."""
    exact: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Strides that are numbers of the body, whatever the specs say of them: dims by parameter."""
    _noted: set[Sym] | None = None
    _referred: set[int] = field(default_factory=set)

    # ---- steps ----

    def make(self, convention: CallingConvention) -> None:
        """Emit a convention's code; one that says no step of its own is shown by its name."""
        before, start = self._said, len(self.steps.lines)
        block = self.emitter.builder.block
        place = block, len(block.instructions)
        convention.emit(self)
        block = self.emitter.builder.block
        if self._said == before and place != (block, len(block.instructions)):
            name = type(convention).__name__
            self.steps.wrap(start, f"{name}, code of its own, which inspect_llvm() shows")

    def say(self, step: Line) -> None:
        """Add a line to the steps that `inspect_ir` shows: what the code does that a convention
        emits next.  A function is called when somebody reads the steps; it must not hold the call,
        which the compiled function would keep alive."""
        self._said += 1
        self.steps.add(step)

    def refuse(self, flag: ir.Value, fault: Fault, values: Sequence[ir.Value] = ()) -> None:
        """See `Flow`."""
        self.steps.refusal(fault)
        Flow.refuse(self, flag, fault, values)

    def require(self, status: ir.Value, faults: Sequence[Fault]) -> None:
        """See `Flow`."""
        self.steps.status(faults)
        Flow.require(self, status, faults)

    @contextmanager
    def undone(self, undo: Callable[[bool], None]) -> Iterator[None]:
        """See `Flow`."""

        def shown(well: bool) -> None:
            at_end = self.steps.block("then, also after an error:") if well else self.steps.unseen()
            with at_end:
                undo(well)

        with Flow.undone(self, shown):
            yield

    # ---- values of the call ----

    def leaves(self, param: Param) -> list[ir.Value]:
        """The leaves of a parameter or of an item inside one, with the types that `Body` documents.

        Raises ValueError for a parameter that is not in the signature.
        """
        places = list(first_slots(self.signature.params))
        # The object itself first: two parameters of a signature may be equal.
        found = [slot for each, slot in places if each is param]
        found = found or [slot for each, slot in places if each == param]
        if len(found) != 1:
            which = "is in no parameter" if not found else "stands at several places"
            raise ValueError(f"{_shown(param)} {which} of {self.signature}{self._near(param)}")
        first = found[0]
        return [self.given[first + i] for i in range(len(leaves_of(param)))]

    def object_of(self, tensor: Tensor) -> ir.Value:
        """The Tensor object of an argument, borrowed; the convention has it among its `objects`."""
        return self.objects[id(tensor)]

    def handle_of(self, tensor: Tensor) -> ir.Value:
        """The Tensor object of a tensor that the call has allocated, which it owns.  Raises
        ValueError for another tensor."""
        if id(tensor) not in self._places:
            raise ValueError(f"{self.signature.name}: the call does not make {tensor.name!r}")
        at = self.emitter.index(self.handles, PTR, self._places[id(tensor)])
        return self.emitter.load(at, PTR, name=tensor.name)

    def _near(self, param: Param) -> str:
        """The hint for an unknown parameter if a similar one exists."""
        made = any(each.name == param.name for each, _ in self._made)
        known = any(each.name == param.name for each in self.signature.params)
        if not (made or known) and isinstance(param, Tensor):
            return ": what the call allocates is in results=[…], or in a Sequence's temporaries=[…]"
        if not (made or known):
            return ""
        where = "a result or temporary" if made else "a parameter"
        return f": {where} of this name has other properties, so name that object itself"

    def address(self, data: Data) -> ir.Value:
        """The address of a tensor's data: of a parameter, a result or a temporary.

        Null for an absent optional tensor.
        """
        self._handed.add(id(data.tensor))
        made = [at for each, at in self._made if each is data.tensor]
        made = made or [at for each, at in self._made if each == data.tensor]
        first = made[-1] if made else self.leaves(data.tensor)[0]
        if data.offset == 0:
            return first
        offset = self.size(data.offset, f"the offset of {data.tensor.name}")
        return self.emitter.index(first, I8, offset)

    def size(self, dim: Dim, what: str, kind: str = "ValueError") -> ir.Value:
        """The value of a size, i64; an error of this kind in the call if it is undefined.

        `what` is its name in that error.  Raises ValueError for a size of another signature.
        """
        self.check_known(dim, what)
        fault = Fault(kind, f"{literal(what)} overflows 64 bits or divides by zero")
        ranges = {each: each.interval() for each in symbols_of(dim) if self._is_bound(each)}
        symbols = {symbol: self.symbol(symbol, what) for symbol in symbols_of(dim)}
        lowering = Sizes(self.emitter, symbols, ranges, lambda flag: self.refuse(flag, fault))
        return lowering.lower(dim).value

    def _is_bound(self, symbol: Sym) -> bool:
        """Whether the value of a symbol is in its bounds: not a capacity's, which stands for it."""
        awaited = symbol not in self._told and any(
            tensor.shape[0] == symbol for tensor, _ in self._larger
        )
        return symbol in self.symbols and not awaited

    def check_known(self, dim: Dim, what: str) -> None:
        """Raise ValueError for a size with a symbol that this signature does not bind."""
        for symbol in symbols_of(dim):
            if symbol.key in self.places and symbol in self.symbols:
                raise ValueError(
                    f"{what}: {symbol} is the value of an Out, so it can be no size in the "
                    f"signature of {self.signature.name}"
                )
            known = symbol in self.symbols or symbol.key in self.places
            if not known and not isinstance(symbol.key, ValueOf):
                raise ValueError(
                    f"{what}: the symbol {symbol} is in no parameter of {self.signature}, so a "
                    f"call does not tell its value"
                )

    def unsigned(self, dim: Dim, what: str) -> ir.Value | None:
        """The value of an `Out("uint64")` alone, of which all bits count; None for another size."""
        place = self.places.get(dim.key) if isinstance(dim, Sym) else None
        if place is None or not isinstance(place.param, Scalar) or place.param.dtype != Uint64:
            return None
        place.check_written(what)
        return self.emitter.load(place.address, I64)

    def symbol(self, symbol: Sym, what: str) -> ir.Value:
        """The value of a symbol, i64."""
        place = self.places.get(symbol.key)
        if place is not None:
            assert isinstance(place.param, Scalar)
            place.check_written(what)
            kind = ir.IntType(place.param.dtype.bits)
            return self.wide(self.emitter.load(place.address, kind), place.param, what)
        if not isinstance(symbol.key, ValueOf):
            (self.numbers if self._noted is None else self._noted).add(symbol)
            return self.symbols[symbol]
        param = next(
            (each for each in self.signature.params if each.name == symbol.key.param), None
        )
        if not isinstance(param, Scalar) or param.dtype.kind == "float":
            raise ValueError(f"{what}: {symbol} is no integer parameter of {self.signature}")
        return self.wide(self.leaves(param)[0], param, what)

    @contextmanager
    def describing(self, *, hands_on: bool = True) -> Iterator[None]:
        """The sizes that are read describe tensors, and where a tensor has one element or none,
        its stride may be another one; `hands_on`: to code that may read it as a number."""
        before, self._noted = self._noted, self.described if hands_on else set()
        try:
            yield
        finally:
            self._noted = before

    def wide(self, value: ir.Value, param: Scalar, what: str) -> ir.Value:
        """An integer parameter as i64; a uint64 that does not fit is a ValueError of the call."""
        if param.dtype.bits < 64:
            signed = param.dtype.kind == "int"
            return getattr(self.emitter.builder, "sext" if signed else "zext")(value, I64)
        if param.dtype.kind != "int":
            message = f"{literal(what)}: {param.name} does not fit 64 bits with a sign"
            beyond = self.emitter.icmp("slt", value, self.emitter.const_i64(0))
            self.refuse(beyond, Fault("ValueError", message))
        return value

    def condition(self, condition: Condition) -> ir.Value:
        """Whether a condition holds, i1."""
        e = self.emitter
        match condition:
            case Comparison(op, lhs, rhs):
                left, right = (self.size(side, "a size of a condition") for side in (lhs, rhs))
                return e.icmp(op if op in ("eq", "ne") else f"s{op}", left, right)  # type: ignore[arg-type]
            case FloatComparison():
                return self._float_comparison(condition)
            case FloatRelation():
                return self._float_relation(condition)
            case Aligned(data, to):
                bits = e.builder.ptrtoint(self.address(data), I64)
                rest = e.binary("and", bits, e.const_i64(to - 1))
                return e.icmp("eq", rest, e.const_i64(0))
            case Present(param):
                return e.icmp("ne", self.leaves(param)[0], ir.Constant(I8, 0))
            case Negation(inner):
                return e.not_(self.condition(inner))
            case Junction(op, lhs, rhs):
                return e.binary(op, self.condition(lhs), self.condition(rhs))

    def _float_comparison(self, condition: FloatComparison) -> ir.Value:
        e, param = self.emitter, condition.param
        value = halves.to_float64(e, param.dtype, self.leaves(param)[0])
        # As in Python, NaN is unequal to everything, and every other comparison with it is false.
        compare = e.builder.fcmp_unordered if condition.op == "ne" else e.builder.fcmp_ordered
        return compare(_FLOAT_PREDICATES[condition.op], value, ir.Constant(F64, condition.number))

    def _float_relation(self, condition: FloatRelation) -> ir.Value:
        left, right = (float_value(self, each) for each in (condition.lhs, condition.rhs))
        if condition.op == "same":
            return same_float(self, left, right)
        builder = self.emitter.builder
        compare = builder.fcmp_unordered if condition.op == "ne" else builder.fcmp_ordered
        return compare(_FLOAT_PREDICATES[condition.op], left, right)

    # ---- control flow ----

    @contextmanager
    def where(self, condition: Condition | None) -> Iterator[None]:
        """Emit code that runs if a condition holds; None means always."""
        if condition is None:
            yield
            return
        on, behind = self.emitter.block("when"), self.emitter.block("then")
        self.emitter.cond_branch(self.condition(condition), on, behind)
        self.emitter.at(on)
        with self.steps.block(self.with_condition("if {}:", condition)), self.apart():
            yield
        self.emitter.branch(behind)
        self.emitter.at(behind)

    def with_condition(self, line: str, condition: Condition) -> Line:
        """A step with a condition in the place of `{}`."""
        return partial(_with_condition, line, condition, self.signature)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Emit code that may not run: the tensors that it makes are not visible after it."""
        known = len(self._made)
        self._sometimes += 1
        yield
        self._sometimes -= 1
        del self._made[known:]

    # ---- tensors ----

    def dltensor(self, tensor: Tensor, address: ir.Value | None = None) -> ir.Value:
        """A DLTensor on the stack with the sizes and strides of a tensor; returns its address.

        `address` is the address of the data if the signature does not have it.
        """
        e = self.emitter
        at = self.address(tensor.data) if address is None else address
        with self.describing():
            shape, strides = (
                tensors.dims(e, len(sizes), self._sizes(tensor, name, sizes), name)
                for name, sizes in (("shape", tensor.shape), ("strides", tensor.strides))
            )
        device, index = self.device_type(tensor), self.device_index(tensor)
        made = tensors.DLTensor(at, device, index, tensor.dtype, len(tensor.shape), shape, strides)
        return made.store(e, tensor.name)

    def _sizes(self, tensor: Tensor, name: str, dims: Sequence[Dim]) -> Iterator[ir.Value]:
        for axis, dim in enumerate(dims):
            yield self.size(dim, f"{name}[{axis}] of {tensor.name}")

    def device_type(self, tensor: Tensor) -> DeviceType:
        """The device type of a tensor."""
        return DeviceType(DEVICE_CODES[tensor.device or self.target])

    def on_host(self, tensor: Tensor) -> bool:
        """Whether the memory of a tensor is the host's, ordinary or pinned."""
        return (tensor.device or self.target) in HOST_DEVICES

    def device_index(self, tensor: Tensor) -> ir.Value:
        """The ordinal of a tensor's device, i32."""
        zero = ir.Constant(I32, 0)
        if self.on_host(tensor):
            return zero
        none = self.emitter.icmp("slt", self.device, zero)
        return self.emitter.select(none, zero, self.device)

    def allocate(self, tensor: Tensor) -> ir.Value:
        """Allocate a tensor, which the body owns from now on; its address is known afterwards."""
        e, name = self.emitter, tensor.name
        if tensor.capacity is not None:
            self._reserve(tensor, tensor.capacity)
        if tensor.strides != compact_strides(tensor.shape, range(len(tensor.shape))[::-1]):
            raise ValueError(
                f"{name}: a tensor that a call makes is compact and row-major, so it has no "
                f"strides of its own"
            )
        for axis, dim in enumerate(tensor.shape):
            size = self.size(dim, f"shape[{axis}] of {name}")
            fault = Fault(
                "ValueError", f"Invalid shape[{axis}] of {name}, expected at least 0, but got {{}}"
            )
            self.refuse(e.icmp("slt", size, e.const_i64(0)), fault, [size])
        self.steps.add(partial(_allocation, self.signature, tensor))
        prototype = self.dltensor(tensor, e.null())
        if tensor.align <= ALIGNMENT:
            e.store_field(prototype, DLTENSOR, "strides", e.null())
        place = e.index(self.handles, PTR, self.owned)
        address = tensors.elements(e, self.allocated(tensor, prototype))
        self._made.append((tensor, address))
        if tensor.capacity is not None:
            self._larger.append((tensor, place))
        return address

    def allocated(self, tensor: Tensor, prototype: ir.Value) -> ir.Value:
        """The handle of a new tensor like the prototype, a DLTensor on the stack (see
        `tensors.allocate`), which the body owns from now on.  Its alignment is that of `tensor`."""
        e = self.emitter
        place = e.index(self.handles, PTR, self.owned)
        self._places[id(tensor)] = self.owned
        self.owned += 1
        status = tensors.allocate(e, prototype, place, self.values, tensor.align)
        most = max(ALIGNMENT, tensor.align)
        self.require(status, failures(self.device_type(tensor).name.lower(), None, most))
        return e.load(place, PTR, name=tensor.name)

    # ---- sizes that the call tells ----

    def _reserve(self, tensor: Tensor, capacity: Dim) -> None:
        """Let the size of a tensor be its capacity until the call tells it."""
        size, what = tensor.shape[0], f"the capacity of {tensor.name}"
        assert isinstance(size, Sym)
        given = [each for each, _ in self._larger if each.shape[0] == size]
        if given and given[0].capacity != capacity:
            raise ValueError(
                f"{self.signature.name}: {given[0].name} and {tensor.name} have one size, but not "
                f"one capacity: name two sizes"
            )
        if given:
            return
        value = self.size(capacity, what)
        most = self.emitter.const_i64((1 << size.width - 1) - 1)
        fault = Fault(
            "ValueError",
            f"{literal(what)} is {{}}, expected at most {{}}, the most of {size}: use a symbol of "
            f"64 bits",
        )
        if size.width < 64:
            self.refuse(self.emitter.icmp("sgt", value, most), fault, [value, most])
        self.symbols = {**self.symbols, size: value}

    def tell(self, size: Sym, value: ir.Value, teller: str) -> None:
        """Give a size the value, i64, that a function has returned: it is that from here on, and
        the size of the results that have it and a capacity.

        `teller` names the function in errors.  A value below 0 or above a capacity is a
        RuntimeError of the call, as is one that the symbol cannot have.  Raises ValueError for a
        size that the arguments tell or that is told twice, and in code that may not run.
        """
        e, shown = self.emitter, size.name or "a size"
        if self._sometimes:
            raise ValueError(f"{teller}: a call that may not be made cannot tell {shown}")
        if size in self.signature.symbols or size in self._told:
            raise ValueError(f"{teller}: {shown} is told already, by the arguments or a call")
        self._told.add(size)
        self.steps.add(f"{shown} is what {teller} gave")
        results = [each for each, _ in self._larger if each.shape[0] == size]
        most = self.symbols[size] if results else e.const_i64((1 << size.width - 1) - 1)
        of = f"the capacity of {results[0].name}" if results else f"the most of {size.width} bits"
        expected = f"expected from 0 to {{}}, {of}"
        message = f"{literal(teller)} gave {literal(shown)} = {{}}, {expected}"
        # Compared without signs a negative number is above every capacity.
        beyond = e.icmp("ugt", value, most)
        self.refuse(beyond, Fault("RuntimeError", message), [value, most])
        if size.divisibility > 1:
            divisor = e.const_i64(size.divisibility)
            message = f"{literal(teller)} gave {literal(shown)} = {{}}, expected a multiple of {{}}"
            rest = e.icmp("ne", e.builder.urem(value, divisor), e.const_i64(0))
            self.refuse(rest, Fault("RuntimeError", message), [value, divisor])
        if size.bounds:
            low, high = size.interval(signed=False)
            message = f"{literal(teller)} gave {literal(shown)} = {{}}, expected {low} to {high}"
            # One unsigned comparison for both bounds: below `low` the difference wraps to a large
            # number.
            span, above = e.const_i64(high - low), e.builder.sub(value, e.const_i64(low))
            outside = e.icmp("ugt", above, span)
            self.refuse(outside, Fault("RuntimeError", message), [value])
        self.symbols = {**self.symbols, size: value}

    def shrink(self) -> None:
        """Give the results with a capacity the sizes that the call has told; nothing is copied.

        Raises ValueError for a size that nothing told.
        """
        for tensor, place in self._larger:
            if tensor.shape[0] not in self._told:
                raise ValueError(
                    f"{self.signature.name}: nothing tells the size {tensor.shape[0]} of the "
                    f"result {tensor.name!r}: conventions.Sized(…) takes it from what a function "
                    f"returns"
                )
            self.steps.add(f"shrink {tensor.name} to {tensor.shape[0]} rows")
            prototype = self.dltensor(tensor, self.address(tensor.data))
            status = tensors.shrink(self.emitter, prototype, place)
            self.require(status, [Fault(*NO_VIEWS)])

    def refers_again(self, argument: object) -> bool:
        """Whether this object, an argument, was asked about before."""
        known = id(argument) in self._referred
        self._referred.add(id(argument))
        return known

    def makes(self, tensor: Tensor) -> bool:
        """Whether the call allocated this tensor, a result or a temporary."""
        return any(each is tensor for each, _ in self._made)

    def fills(self, tensor: Tensor) -> None:
        """Record that the call has written all of a tensor."""
        self._filled.add(id(tensor))

    def is_filled(self, tensor: Tensor) -> bool:
        """Whether the call has filled a tensor that it allocated."""
        return id(tensor) in self._filled

    def handed(self) -> frozenset[int]:
        """The tensors whose addresses have been requested so far, by identity."""
        return frozenset(self._handed)

    # ---- results and dependencies of the code ----

    def give(self, leaves: Sequence[ir.Value]) -> None:
        """Return one of the convention's `results`, as its leaves; call this in their order."""
        self.given_back.append(lambda: list(leaves))

    def give_once(self, param: Param, leaves: Callable[[], list[ir.Value]]) -> None:
        """Return a result, as its leaves at the end of the call, unless a step before has done
        it."""
        if id(param) not in self._given_once:
            self._given_once.add(id(param))
            self.given_back.append(leaves)

    def zeroed(self, element: FieldType, name: str) -> ir.Value:
        """Stack space of zeros from the start of the call on."""
        place = self.emitter.alloca(element, name=name)
        with self.emitter.within(self.emitter.current.entry_basic_block):
            zeros = ir.ArrayType(I8, size_of(element))
            kind = element if isinstance(element, ir.Type) else zeros
            self.emitter.store(ir.Constant(kind, None), place)
        return place

    # ---- the end of the call ----

    def at_end(self, ending: Callable[[bool], None]) -> None:
        """Add code that runs once at the end of the call, the last added first, whether or not it
        fails; it is told which, and may fail itself only after success.

        What it reads must have a value from the start of the call on, see `zeroed`.
        """
        self._endings.append(ending)

    @contextmanager
    def ended(self, has_endings: bool) -> Iterator[None]:
        """Emit code after which the endings run that it adds."""
        if not has_endings:
            yield
            assert not self._endings, "a call that has no ending added one"
            return
        with self.undone(self._end):
            yield
            self.check()

    def take(self) -> None:
        """Read what a C function has left in the fields of its structs."""
        for each in self.taken:
            each()
        self.taken.clear()

    def check(self) -> None:
        """End the call with the first error of a callback, if there is one."""
        for each in self.checks:
            each()

    def _end(self, well: bool) -> None:
        for ending in reversed(self._endings):
            ending(well)

    def keep(self) -> ir.Value:
        """The address of a TVMFFIAny, None at first, that lives until the call has made its
        results.  There is one for each string that a convention returns."""
        assert self.keeps is not None, "a convention that gives no string back keeps one"
        place = self.emitter.index(self.keeps, ANY, self.kept)
        self.kept += 1
        return place

    def part(self, part: Part) -> None:
        """Add code to the object; its function is `part.symbol` here."""
        if part not in self.parts:
            self.parts.append(part)

    def link(self, link: Link) -> None:
        """Add a symbol of another library that the code calls."""
        self.links[link] = None

    # ---- notes about the function ----

    def assume(self, text: str) -> None:
        """Add a requirement on every call that the code checks; it is part of the function's
        documentation.  It is ignored in code that may not run."""
        if not self._sometimes:
            self.assumed[text] = None

    def remark(self, text: str, *, quiet: bool = False) -> None:
        """Add a remark for the builder of the function: it is in the notes and, unless it is
        `quiet`, a `BuildWarning`."""
        self.remarks.setdefault(text, not quiet)

    # ---- GPUs ----

    def launcher(self, code: DeviceCode) -> tuple[Launcher, ir.Value]:
        """The launcher of these kernels on the call's device, and the ordinal of the device.

        It must be used inside `entered`.
        """
        entered = self._entered[id(code)]
        return entered.launcher, entered.device

    def innermost_launcher(self) -> Launcher | None:
        """The launcher of the innermost `entered`, None outside of any."""
        entered = next(reversed(self._entered.values()), None)
        return None if entered is None else entered.launcher

    @contextmanager
    def entered(self, code: DeviceCode) -> Iterator[None]:
        """Emit code with the call's device current and these kernels loaded; nests.

        Inside of another one the device is current already, so that only the kernels are loaded.
        """
        if id(code) in self._entered:
            yield
            return
        from ferrule.compiler.cuda.launcher.faults import failures as cuda_failures
        from ferrule.compiler.cuda.launcher.images import images_of

        name = self.signature.name
        launcher = self._launchers.get(id(code))
        if launcher is None:
            launcher = Launcher(self.emitter, images_of(code), code.kernels)
            self._launchers[id(code)] = launcher
        kernels = f"{', '.join(code.kernels)} for {', '.join(code.archs) or 'any GPU'}"
        if self._entered:
            self.steps.add(f"load {kernels}")
            opened = launcher.open(self.device, self.values)
            self.require(opened, cuda_failures(f"at the start of {name}", None))
            self._entered[id(code)] = _Entered(launcher, self.device)
            yield
            del self._entered[id(code)]
            return
        self.steps.add(f"make the call's GPU current, and load {kernels}")
        status, token, device = launcher.enter(self.device, self.values)
        self.require(status, cuda_failures(f"at the start of {name}", None))

        def leave(well: bool) -> None:
            left = launcher.leave(token, self.values if well else None)
            if well:
                self.steps.add("make the GPU before current again")
                self.require(left, cuda_failures(f"at the end of {name}", None))

        with self.undone(leave):
            before, self.device = self.device, device
            self._entered[id(code)] = _Entered(launcher, device)
            yield
            del self._entered[id(code)]
            self.device = before


def _with_condition(line: str, condition: Condition, signature: Signature) -> str:
    return line.format(format_condition(condition, signature.known))


def _allocation(signature: Signature, tensor: Tensor) -> str:
    shape = ", ".join(map(signature.format, tensor.shape))
    of = tensor.capacity
    most = "" if of is None else f", space for {signature.format(of)}"
    return f"allocate {tensor.name}: {tensor.dtype.name}[{shape}]{most}"


def _shown(param: Param) -> str:
    return f"{type(param).__name__} {param.name!r}"
