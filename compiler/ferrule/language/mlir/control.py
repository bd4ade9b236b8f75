"""Branches and loops as `scf`, and how a region ends early.

`scf` has no early exit.  A region in which a check may fail is an `scf.execute_region` that yields
a status, 0 or the number of a fault, before its values; behind it a `cf.cond_br` leaves the
surrounding region if the status is not 0.  A loop with such a body is an `scf.while` that carries
the status.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ferrule.language.codegen.values.scalars import dtype_of
from ferrule.language.ir import ops
from ferrule.runtime.llvm.arithmetic import Predicate
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.language.mlir.functions import FunctionText


def _yield(f: FunctionText, values: Sequence[str]) -> None:
    types = ", ".join(f.t.types[value] for value in values)
    f.t.line(f"scf.yield {', '.join(values)} : {types}" if values else "scf.yield")


def _end(f: FunctionText, values: Sequence[str]) -> None:
    """As `_yield`, where a yield of nothing may be omitted."""
    if values or not f.reads:
        _yield(f, values)


def _arrow(types: Sequence[str]) -> str:
    return f" -> ({', '.join(types)})" if types else ""


def failing(f: FunctionText, body: Callable[[], Sequence[str]], types: Sequence[str]) -> list[str]:
    """Emits a body that may fail; returns the names of its status and of the values that it
    yields."""
    t, exit_ = f.t, f.t.label("exit")
    names = t.several(f"scf.execute_region{_arrow(['i32', *types])} {{", ["i32", *types])
    f.exits.append(exit_)
    with t.indented():
        values = body()
        _yield(f, [t.integer(0, "i32"), *values])
    f.exits.pop()
    if exit_ in f.left:
        status = t.known(t.name("status"), "i32")
        with t.indented():
            t.block(exit_, f"({status}: i32)")
            _yield(f, [status, *(_nothing(f, type_) for type_ in types)])
    t.line("}")
    return names


def _nothing(f: FunctionText, type_: str) -> str:
    """A value that nothing uses.  A poison could reach the test of a loop that has failed."""
    if type_[0] == "i":
        return f.t.integer(0, type_)
    if type_[0] in "bf":
        return f.t.float_bits(0, type_)
    return f.t.op(f"ub.poison : {type_}", type_)


def leave_if(f: FunctionText, status: str) -> None:
    """Leaves the region or function with this status unless it is 0."""
    t, on = f.t, f.t.label("passed")
    passed = t.icmp("eq", status, t.integer(0, "i32"))
    t.line(f"cf.cond_br {passed}, {on}, {f.exit()}({status} : i32)")
    t.block(on)


def if_(f: FunctionText, op: ops.If) -> None:
    """A branch."""
    t, fails = f.t, f.fails(op)
    types = [f.type_of(result) for result in op.results]
    whole = ["i32", *types] if fails else types
    hint = op.results[0].hint if f.reads and op.results else ""
    names = t.several(f"scf.if {f.values[op.condition]}{_arrow(whole)} {{", whole, hint)
    for number, side in enumerate((op.then, op.otherwise)):
        if number and not (whole or side.ops):
            break
        if number:
            t.line("} else {")
        with t.indented():
            _end(f, _side(f, side, types, fails=fails))
    t.line("}")
    if fails:
        leave_if(f, names.pop(0))
    f.values.update(zip(op.results, names, strict=True))


def _side(f: FunctionText, side: ops.Region, types: Sequence[str], *, fails: bool) -> Sequence[str]:
    """Emits a side of a branch, or the body of a loop; returns what it yields.  A status comes
    first where it may fail."""

    def body() -> Sequence[str]:
        f.region(side)
        return f.yielded(side)

    return failing(f, body, types) if fails else body()


@dataclass(frozen=True, slots=True)
class Range:
    """A counter (i64) from `first` to below `end`; its index is base + counter * step."""

    first: str
    end: str
    base: str | None = None
    step: str | None = None
    signed: bool = True

    def index(self, f: FunctionText, counter: str) -> str:
        """The index of an iteration."""
        if self.base is None or self.step is None:
            return counter
        return f.t.binary("add", self.base, f.t.binary("mul", counter, self.step))


def _range(f: FunctionText, op: ops.For) -> Range:
    """The iterations of Python's `range`: none for a step of 0, and no counter wraps around."""
    t, dtype = f.t, dtype_of(op.index)
    signed = dtype.kind == "int"
    low, high, by = (f.as_i64(value) for value in (op.start, op.stop, op.step))
    if f.constants.get(op.step) == 1:
        return Range(low, high, signed=signed or dtype.bits < 64)
    less: Predicate = "slt" if signed else "ult"
    zero, one = t.const_i64(0), t.const_i64(1)
    up = t.icmp(less, zero, by)
    down = t.icmp(less, by, zero)
    goes = t.select(up, t.icmp(less, low, high), t.binary("and", down, t.icmp(less, high, low)))
    distance = t.select(up, t.binary("sub", high, low), t.binary("sub", low, high))
    size = t.select(up, by, t.binary("sub", zero, by))
    divisor = t.select(t.icmp("eq", by, zero), one, size)
    count = t.arith("divui", t.binary("sub", distance, one), divisor)
    count = t.select(goes, t.binary("add", count, one), zero)
    return Range(zero, count, low, by, signed=False)


def for_(f: FunctionText, op: ops.For) -> None:
    """A counted loop."""
    types = [f.type_of(value) for value in op.carried]
    initial = f.carried(op.initial)
    if f.reads and _is_indexed(f, op):
        _indexed(f, op, initial, types)
        return
    limits = _range(f, op)

    def body(counter: str, carried: Sequence[str]) -> Sequence[str]:
        f.values.update(zip(op.carried, carried, strict=True))
        f.integer(op.index, limits.index(f, counter))
        return _side(f, op.body, types, fails=f.fails(op))

    hint = op.index.hint
    if f.fails(op):
        names = _until_failed(f, limits, initial, types, body, hint)
    else:
        names = _counted(f, limits, initial, types, body, hint)
    f.values.update(zip(op.results, names, strict=True))


def _is_indexed(f: FunctionText, op: ops.For) -> bool:
    """Whether a loop can count in `index`: its step is a positive constant, and the counter cannot
    wrap."""
    dtype, step = dtype_of(op.index), f.constants.get(op.step, 0)
    return dtype.kind == "int" and (step == 1 or (step > 1 and dtype.bits < 64))


def _indexed(f: FunctionText, op: ops.For, initial: Sequence[str], types: Sequence[str]) -> None:
    """A loop over `index`, see `_is_indexed`."""
    t = f.t
    first, end = (t.as_index(f.as_i64(value)) for value in (op.start, op.stop))
    counter = t.known(t.name(op.index.hint or "i"), "index")
    carried = [
        t.known(t.name(v.hint or "carried"), v_type)
        for v, v_type in zip(op.carried, types, strict=True)
    ]
    if t.folding is not None:
        t.folding.small[counter] = dtype_of(op.index).bits
    pairs = ", ".join(f"{c} = {i}" for c, i in zip(carried, initial, strict=True))
    step = t.index(f.constants[op.step])
    head = f"scf.for {counter} = {first} to {end} step {step}"
    head += f" iter_args({pairs}){_arrow(types)}" if types else ""
    names = t.several(f"{head} {{", types, op.results[0].hint if types else "")
    with t.indented():
        f.values.update(zip(op.carried, carried, strict=True))
        f.integer(op.index, t.cast("index_cast", counter, "i64"))
        f.region(op.body)
        _end(f, f.yielded(op.body))
    t.line("}")
    f.values.update(zip(op.results, names, strict=True))


_Body = Callable[[str, Sequence[str]], Sequence[str]]


def _counted(
    f: FunctionText,
    limits: Range,
    initial: Sequence[str],
    types: Sequence[str],
    body: _Body,
    hint: str = "",
) -> list[str]:
    """A loop that cannot fail; returns the carried values after it."""
    t = f.t
    counter = t.known(t.name(hint or "i"), "i64")
    carried = [t.known(t.name("carried"), type_) for type_ in types]
    pairs = ", ".join(f"{c} = {i}" for c, i in zip(carried, initial, strict=True))
    form = "scf.for" if limits.signed else "scf.for unsigned"
    head = f"{form} {counter} = {limits.first} to {limits.end} step {t.const_i64(1)}"
    head += f" iter_args({pairs}){_arrow(types)}" if types else ""
    names = t.several(f"{head} : i64 {{", types)
    with t.indented():
        _end(f, body(counter, carried))
    t.line("}")
    return names


def _until_failed(
    f: FunctionText,
    limits: Range,
    initial: Sequence[str],
    types: Sequence[str],
    body: _Body,
    hint: str = "",
) -> list[str]:
    """A loop whose body yields a status, too; it stops at the first status that is not 0, which
    ends the region."""
    t, one, zero = f.t, f.t.const_i64(1), f.t.integer(0, "i32")
    whole = ["i64", "i32", *types]

    def test(given: Sequence[str]) -> tuple[str, Sequence[str]]:
        more = t.icmp("slt" if limits.signed else "ult", given[0], limits.end)
        return t.binary("and", more, t.icmp("eq", given[1], zero)), given

    def iteration(given: Sequence[str]) -> Sequence[str]:
        after = body(given[0], given[2:])
        return [t.binary("add", given[0], one), *after]

    names = _while(f, [limits.first, zero, *initial], whole, test, iteration, hint)
    leave_if(f, names[1])
    return names[2:]


def _while(
    f: FunctionText,
    initial: Sequence[str],
    types: Sequence[str],
    test: Callable[[Sequence[str]], tuple[str, Sequence[str]]],
    body: Callable[[Sequence[str]], Sequence[str]],
    hint: str = "",
) -> list[str]:
    """An `scf.while` that carries these values from its test to its body and back."""
    t = f.t
    before = [t.known(t.name(hint or "carried"), type_) for type_ in types]
    after = [t.known(t.name(hint or "carried"), type_) for type_ in types]
    pairs = ", ".join(f"{b} = {i}" for b, i in zip(before, initial, strict=True))
    listed = ", ".join(types)
    opening = (
        f"scf.while ({pairs}) : ({listed}) -> ({listed}) {{"
        if types
        else ("scf.while : () -> () {")
    )
    names = t.several(opening, types)
    with t.indented():
        holds, passed = test(before)
        t.line(f"scf.condition({holds})" + (f" {', '.join(passed)} : {listed}" if types else ""))
    t.line("} do {")
    with t.indented():
        arguments = ", ".join(f"{a}: {type_}" for a, type_ in zip(after, types, strict=True))
        t.block("^bb0", f"({arguments})" if types else "")
        _yield(f, body(after))
    t.line("}")
    return names


def while_(f: FunctionText, op: ops.While) -> None:
    """A loop with a test before each iteration."""
    types = [f.type_of(value) for value in op.carried]
    initial = f.carried(op.initial)
    if f.fails(op):
        names = _failing_while(f, op, initial, types)
    else:

        def test(given: Sequence[str]) -> tuple[str, Sequence[str]]:
            f.values.update(zip(op.carried, given, strict=True))
            f.region(op.test)
            return f.values[op.test.yields[0]], given

        def body(given: Sequence[str]) -> Sequence[str]:
            f.values.update(zip(op.carried, given, strict=True))
            f.region(op.body)
            return f.yielded(op.body)

        names = _while(f, initial, types, test, body)
    f.values.update(zip(op.results, names, strict=True))


def _failing_while(
    f: FunctionText, op: ops.While, initial: Sequence[str], types: Sequence[str]
) -> list[str]:
    """As `while_`, for a loop whose test or body may fail: the first carried value is a status."""
    t = f.t

    def test(given: Sequence[str]) -> tuple[str, Sequence[str]]:
        f.values.update(zip(op.carried, given[1:], strict=True))
        passed = t.icmp("eq", given[0], t.integer(0, "i32"))
        found = t.several(f"scf.if {passed} -> (i32, i1) {{", ["i32", "i1"])
        with t.indented():
            _yield(f, _side(f, op.test, ["i1"], fails=True))
        t.line("} else {")
        with t.indented():
            _yield(f, [given[0], t.const_i1(False)])
        t.line("}")
        status = found[0]
        ok = t.icmp("eq", status, t.integer(0, "i32"))
        # After a failure the test has no result: a constant stands for it, which nothing uses.
        holds = t.select(ok, found[1], t.const_i1(False))
        return holds, [status, *given[1:]]

    def body(given: Sequence[str]) -> Sequence[str]:
        f.values.update(zip(op.carried, given[1:], strict=True))
        return _side(f, op.body, types, fails=True)

    names = _while(f, [t.integer(0, "i32"), *initial], ["i32", *types], test, body)
    leave_if(f, names[0])
    return names[1:]


def counted(
    f: FunctionText, first: str, end: str, body: Callable[[str], None], *, fails: bool, hint: str
) -> None:
    """A loop over first <= i < end (i64), whose body carries nothing."""

    def plain(counter: str, _: Sequence[str]) -> Sequence[str]:
        body(counter)
        return ()

    def checked(counter: str, _: Sequence[str]) -> Sequence[str]:
        return failing(f, lambda: plain(counter, ()), ())

    if fails:
        _until_failed(f, Range(first, end), (), (), checked, hint)
    else:
        _counted(f, Range(first, end), (), (), plain, hint)
