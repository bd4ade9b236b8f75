"""What is wrong with the facts of a class of ops, by what its samples do.

Each check compares a fact with something that does not read it: what the interpreter saw, the text
of an op with another field, the unions by which targets choose their code, and the PTX manual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from enum import IntEnum
from typing import Any, Final, get_args

import ferrule as fe
from ferrule.compiler.artefacts import Fault
from ferrule.language.faces.tensor_cores import SharedMatrix
from ferrule.language.ir import ops, threads
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.operation import Effect, Operation
from ferrule.language.ir.printer import print_function
from ferrule.language.ir.types import TensorType
from ferrule.specs import Boolean, DType, Sym, sym_int
from op_facts.observed import Deeds, meets, values_of
from op_facts.since import since

REPEATED: Final = frozenset(("reads", "fails", "blocks"))
"""The effects of ops that may run once for many threads, if their results are the same."""
OF_HOST: Final = (*get_args(ops.HostOp), ops.Text, ops.Return, ops.Define)
OF_KERNELS: Final = (
    *get_args(threads.Cooperation),
    *get_args(threads.CooperationEffect),
    ops.Special,
)
UNSHOWN: Final[Mapping[type[Any], frozenset[str]]] = {
    ops.Size: frozenset(("fault.kind", "fault.message")),
    ops.View: frozenset(("whole",)),
    ops.Call: frozenset(("wanted",)),
    ops.CallBody: frozenset(("made",)),
    ops.Receive: frozenset(("param", "made")),
    ops.Received: frozenset(("owner", "path")),
    ops.TensorCopy: frozenset(("boxes.order",)),
    ops.MapCopy: frozenset(("boxes.order", "lane")),
}
"""What the text of an op leaves out, besides its place in the source."""
_WHOLE: Final = (Fault, SharedMatrix, ops.LaunchOptions, ops.Boxes)
"""Fields of these classes are shown one by one."""


def complaints(kind: type[Operation], deeds: Sequence[Deeds]) -> Iterator[str]:
    """What is wrong with the facts of a class, whose samples did this."""
    for check in _CHECKS:
        yield from check(kind, deeds)


def overrides(kind: type[Operation], name: str) -> bool:
    """Whether a class says a fact by its fields."""
    return getattr(kind, name) is not getattr(Operation, name)


def _groups(kind: type[Operation], deeds: Sequence[Deeds], name: str) -> Iterator[list[Deeds]]:
    """The samples with the same fact: all, unless the class says it by its fields."""
    if not overrides(kind, name):
        yield list(deeds)
        return
    for variant in dict.fromkeys(each.sample.variant for each in deeds):
        yield [each for each in deeds if each.sample.variant == variant]


def _effects(kind: type[Operation], deeds: Sequence[Deeds]) -> Iterator[str]:
    for group in _groups(kind, deeds, "effects"):
        seen = set[str]().union(*(each.effects for each in group))
        for op in (each.op for each in group):
            if op.effects != seen:
                yield f"its effects are {sorted(op.effects)}, but it {sorted(seen)}"
    if overrides(kind, "effects") and kind.facts.effects != deeds[0].op.effects:
        yield "the class has other effects than its first op"


def _writes(kind: type[Operation], deeds: Sequence[Deeds]) -> Iterator[str]:
    for group in _groups(kind, deeds, "written"):
        done = [set[str](), set[str]()]
        elsewhere = any(each.elsewhere for each in group)
        for each in group:
            written = [v for v in each.op.written if isinstance(v.type, TensorType)]
            for found, values in zip(done, (written, each.written), strict=True):
                found |= {name for name, value in _places(each.op) if value in values}
        if done[0] != done[1]:
            yield f"it writes {sorted(done[1])}, but says {sorted(done[0])}"
        if elsewhere and not any(each.op.writes_elsewhere for each in group):
            yield "it writes memory that is no operand's"
    if kind.facts.writes is not None and "writes" not in kind.facts.effects:
        yield "it names what it writes, but does not write"
    for name in kind.facts.writes or ():
        values = [v for each in deeds for field, v in values_of(each.op) if field == name]
        if not all(isinstance(value.type, TensorType) for value in values):
            yield f"it writes {name}, which is no tensor"
    if kind.facts.writes is not None and overrides(kind, "written"):
        yield "it says twice what it writes"


def _places(op: ops.Op) -> Iterator[tuple[str, ops.Value]]:
    """The values in the fields of an op, each with its place among those of the field."""
    numbers: Counter[str] = Counter()
    for name, value in values_of(op):
        yield f"{name}[{numbers[name]}]", value
        numbers[name] += 1


def _elsewhere(kind: type[Operation], deeds: Sequence[Deeds]) -> Iterator[str]:
    foreign = "calls" in kind.facts.effects or kind is ops.InlinePtx
    for each in deeds:
        to_map = each.sample.variant == "store to a map"
        if each.op.writes_elsewhere != (to_map or ("writes" in each.op.effects and foreign)):
            yield "code from elsewhere, and a store to a map in memory, write where they want"


def _uniform(kind: type[Operation], deeds: Sequence[Deeds]) -> Iterator[str]:
    for group in _groups(kind, deeds, "is_uniform"):
        asked = all(each.op.effects <= REPEATED and each.op.defined for each in group)
        asked = asked and kind not in OF_HOST
        alike = asked and all(each.alike for each in group)
        for op in (each.op for each in group):
            if op.is_uniform != alike:
                yield f"it is {'' if alike else 'not '}the same for all threads"
    if overrides(kind, "is_uniform") and kind.facts.uniform != deeds[0].op.is_uniform:
        yield "the class is uniform unlike its first op"


def _speculative(kind: type[Operation], deeds: Sequence[Deeds]) -> Iterator[str]:
    for op in (each.op for each in deeds):
        harmless = not op.effects and bool(op.defined) and not op.regions
        number = isinstance(op, ops.SimpleOp) and isinstance(op.result.type, DType)
        computed = number and kind not in (ops.Address, ops.CallDevice)
        if op.is_speculative != (harmless and (computed or kind is ops.Table)):
            yield "ops that may run in vain are those that compute a number, and tables"
    if overrides(kind, "is_speculative") and kind.facts.speculative != deeds[0].op.is_speculative:
        yield "the class is speculative unlike its first op"


def _place(kind: type[Operation], deeds: Sequence[Deeds]) -> Iterator[str]:
    place = "host" if kind in OF_HOST else "kernel" if kind in OF_KERNELS else "anywhere"
    if kind.facts.place != place:
        yield f"targets have code for it in this place: {place}"


def _since(kind: type[Operation], deeds: Sequence[Deeds]) -> Iterator[str]:
    if overrides(kind, "since") and kind.facts.since is not None:
        yield "it says twice since when GPUs have it"
    for op in (each.op for each in deeds):
        row = since(op)
        wanted = None if row is None else (row.name, row.least)
        if op.since != wanted:
            yield f"GPUs have it since {wanted}, but it says {op.since}"


def _text(kind: type[Operation], deeds: Sequence[Deeds]) -> Iterator[str]:
    if kind.nests:
        if kind.facts.text:
            yield "the printer writes ops with regions, and reads no text"
        return
    if not kind.facts.text:
        yield "it has no text"
    shown: set[str] = set()
    changed: set[str] = set()
    for each in deeds:
        params = dict.fromkeys(value for _, value in values_of(each.op))
        text = _printed(each.op, (*params, _OTHER))
        for name, other in _changed(each.op):
            changed.add(name)
            if _printed(other, (*params, _OTHER)) != text:
                shown.add(name)
    for name in sorted(changed - shown - UNSHOWN.get(kind, frozenset())):
        yield f"its text is the same for another {name}"
    unchanged = {each.name for each in fields(kind)} - {name.partition(".")[0] for name in changed}  # type: ignore[arg-type]
    if not unchanged <= {"location", "result"}:
        yield f"no sample has another {unchanged}"


_OTHER: Final = ops.Value(Boolean, "other")


def _printed(op: ops.Op, params: tuple[ops.Value, ...]) -> str:
    host = ops.Function("f", "host", params, ops.Region((op,)))
    return print_function(host, _Names()).partition("\n")[2]


class _Names(dict[Sym, str]):
    """A name for every symbol."""

    def __missing__(self, symbol: Sym) -> str:
        return self.setdefault(symbol, f"n{len(self)}")


def _changed(op: ops.Op) -> Iterator[tuple[str, ops.Op]]:
    """An op with another value in each of its fields, by their names."""
    for each in fields(op):
        item = getattr(op, each.name)
        inner = fields(item) if isinstance(item, _WHOLE) else ()
        for part in inner:
            other = _other(getattr(item, part.name))
            if other is not None and part.name != "location":
                with suppress(AttributeError, TypeError, ValueError):
                    changed: Any = {each.name: replace(item, **{part.name: other})}
                    yield f"{each.name}.{part.name}", replace(op, **changed)
        other = _other(item)
        if not inner and other is not None and each.name not in ("location", "result"):
            yield each.name, replace(op, **{each.name: other})  # type: ignore[arg-type]


def _other(item: Any) -> Any:
    """Something else of the same kind; None if there is nothing."""
    match item:
        case ops.Value():
            return _OTHER
        case bool():
            return not item
        case IntEnum():
            return next(each for each in type(item) if each != item)
        case int():
            return 2 - item if item in (0, 1, 2) and item != 1 else item + 1
        case str() | bytes():
            return item + item[:1]
        case tuple():
            return item[:-1] if item else None
        case Sym():
            return sym_int()
    if is_dataclass(item) and not isinstance(item, type):
        for inner in fields(item):
            other = _other(getattr(item, inner.name)) if inner.init else None
            if other is not None:
                with suppress(AttributeError, TypeError, ValueError):
                    return replace(item, **{inner.name: other})
    return None


def _roles(kind: type[Operation], deeds: Sequence[Deeds]) -> Iterator[str]:
    for each in deeds:
        op, given = each.op, set(each.sample.given(0))
        for earlier in each.sample.ops[: each.sample.ops.index(op)] if not each.inside else ():
            given |= set(earlier.defined)
        if each.inside:
            continue
        used = {v for inner in op.regions for v in _used(inner)}
        roles: dict[str, list[ops.Value]] = {"operands": [], "defined": [], "defined_inside": []}
        for _, value in values_of(op):
            new = "defined_inside" if value in used else "defined"
            roles["operands" if value in given else new].append(value)
        for role, values in roles.items():
            if list(getattr(op, role)) != values:
                yield f"its {role} are {len(values)} values, in the order of the fields"
        regions = [item for f in fields(op) if isinstance(item := getattr(op, f.name), ops.Region)]
        if list(op.regions) != regions or kind.nests != bool(regions):
            yield f"it has {len(regions)} regions"


def _used(region: ops.Region) -> Iterator[ops.Value]:
    for op in all_ops(region):
        yield from op.operands
        for inner in op.regions:
            yield from inner.yields
    yield from region.yields


def _owned(kind: type[Operation], deeds: Sequence[Deeds]) -> Iterator[str]:
    ended = [each for each in deeds if "fails" not in each.effects]
    for each in ended:
        for name in ("objects", "kept"):
            if getattr(each.op, name) != getattr(each, name):
                yield f"the function has {getattr(each, name)} {name} for it"
        if set(each.op.symbols) != each.symbols:
            yield "it gives other symbols their values"


def _meeting(kind: type[Operation], deeds: Sequence[Deeds]) -> Iterator[str]:
    waiting = [each for each in deeds if isinstance(each.op, ops.Synchronising)]
    for each in waiting:
        several = each.sample.threads == 128 and "waits" in each.effects
        op = each.op
        if several and isinstance(op, ops.Synchronising) and op.meets != meets(each.sample):
            yield f"it waits for {meets(each.sample)}, but says {op.meets}"
        name = op.called.partition("(")[0] if isinstance(op, ops.Synchronising) else ""
        if not hasattr(fe.arch, name):
            yield f"fe.arch has no {name}"
    if ("waits" in kind.facts.effects) != issubclass(kind, ops.Synchronising):
        yield "ops that wait are Synchronising"


_Check = Callable[[type[Operation], Sequence[Deeds]], Iterator[str]]
_CHECKS: Final[tuple[_Check, ...]] = (
    _effects,
    _writes,
    _elsewhere,
    _uniform,
    _speculative,
    _place,
    _since,
    _text,
    _roles,
    _owned,
    _meeting,
)
EFFECTS: Final = get_args(Effect)
