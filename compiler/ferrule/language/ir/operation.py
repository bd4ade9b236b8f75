"""The base of all ops of the kernel IR: operands, effects, and the places where an op may be.

An op is a frozen dataclass derived from `Operation`.  The annotations of its fields determine their
roles:

* `Value`, `Value | None`, `tuple[Value, ...]`: operands, in the order of the fields;
* `Result`: a value that the op defines for later ops;
* `Argument`: a value that it defines for its own regions;
* `Region`: a region, in the order of the text.

Passes query effects and never list ops, so a new op needs no entry in any pass.  The default for
unspecified facts is the worst case: the op has every effect, is not uniform, and may take long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias, get_args

from ferrule.language.ir.values import Region, Value
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.compiler.artefacts import Location
    from ferrule.specs import Sym

Result: TypeAlias = Value
"""A value that an op defines for later ops."""
Argument: TypeAlias = Value
"""A value that an op defines for its own regions."""

Effect = Literal[
    "reads",
    "writes",
    "makes",
    "waits",
    "orders",
    "shows",
    "fails",
    "ends",
    "blocks",
    "calls",
    "asks",
]
EFFECTS: Final = """\
`reads`, `writes`: memory that another op can write, or read.  `makes`: the result is another memory
or object each time.  `waits`: for other threads of the block.  `orders`: what was written before,
and copies in the background, for other threads.  `shows`: something outside of the program, such as
text or the work of another function.  `fails`: ends the call with an error that the program asks
for.  `ends`: the function.  `blocks`: takes so long that other Python threads should run.  `calls`:
runs other code, which may take long.  `asks`: for something that may be refused, with a status."""
"""The effects of running an op, besides its results."""
Effects = frozenset[Effect]

EVERY: Final[Effects] = frozenset(get_args(Effect))
UNSEEN: Final[Effects] = frozenset(("reads", "makes", "blocks", "asks"))
"""Invisible effects: an op with no others may be removed if its result is unused."""

Place = Literal["anywhere", "kernel", "host"]
_Getter: TypeAlias = "Callable[[Any], tuple[Any, ...]]"


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about every op of a class.

    `writes`: the operands whose memory is written, by the names of their fields; None: any.
    `uniform`: the results are the same for all threads of a block if operands and memory are.
    `speculative`: it may run although its result is not needed.  `text`: its printed form, see
    `printer`.  `since`: the name in `fe.arch` and the first architecture of an instruction that
    only some GPUs have.
    """

    effects: Effects = EVERY
    writes: tuple[str, ...] | None = None
    uniform: bool = False
    speculative: bool = False
    place: Place = "anywhere"
    text: str = ""
    since: tuple[str, int] | None = None


class Operation:
    """Base of all ops.  The facts of a class are the keywords of its definition."""

    __slots__ = ()
    facts: ClassVar[Facts] = Facts()
    fields: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The names of the fields for each of the properties below."""
    nests: ClassVar[bool] = False
    """Whether it has regions."""

    if TYPE_CHECKING:  # made of the annotations, by `__init_subclass__`

        @property
        def operands(self) -> tuple[Value, ...]:
            """The values that the op itself reads, without the yields of its regions."""

        @property
        def defined(self) -> tuple[Value, ...]:
            """The values that the op defines for later ops."""

        @property
        def defined_inside(self) -> tuple[Value, ...]:
            """The values that the op defines for its own regions."""

        @property
        def regions(self) -> tuple[Region, ...]:
            """The regions of the op."""

    def __init_subclass__(
        cls,
        effects: Iterable[Effect] = EVERY,
        writes: tuple[str, ...] | None = None,
        uniform: bool = False,
        speculative: bool = False,
        place: Place = "anywhere",
        text: str = "",
        since: tuple[str, int] | None = None,
    ) -> None:
        super().__init_subclass__()
        if "facts" in vars(cls):
            return  # `dataclass` makes each class again, with slots, and copies its attributes
        cls.facts = Facts(frozenset(effects), writes, uniform, speculative, place, text, since)
        annotations = {name: str(text) for name, text in vars(cls)["__annotations__"].items()}
        fields: dict[str, tuple[str, ...]] = {}
        for role, word in _ROLES.items():
            found = {name: text for name, text in annotations.items() if word.search(text)}
            fields[role] = tuple(found)
            setattr(cls, role, property(_getter(found)))
        cls.fields, cls.nests = fields, bool(fields["regions"])

    @property
    def effects(self) -> Effects:
        """The effects of running this op."""
        return self.facts.effects

    @property
    def is_uniform(self) -> bool:
        """Whether the results are uniform if operands and memory are."""
        return self.facts.uniform

    @property
    def is_speculative(self) -> bool:
        """Whether the op may run although its result is not needed."""
        return self.facts.speculative

    @property
    def since(self) -> tuple[str, int] | None:
        """The instruction and the first architecture that has it, if not all have."""
        return self.facts.since

    @property
    def symbols(self) -> tuple[Sym, ...]:
        """The symbols that get their values when the op runs."""
        return ()

    @property
    def objects(self) -> int:
        """The number of tensor objects that the function owns for the op."""
        return 0

    @property
    def kept(self) -> int:
        """The number of values of tvm-ffi that the function owns for the op."""
        return 0

    @property
    def is_owner(self) -> bool:
        """Whether the result is, or is inside of, an object that the function owns."""
        return self.facts.place == "host" and "makes" in self.facts.effects

    @property
    def is_seen(self) -> bool:
        """Whether running the op is visible other than by its results."""
        return not self.effects <= UNSEEN

    @property
    def written(self) -> tuple[Value, ...]:
        """The operands whose memory the op can write."""
        if "writes" not in self.effects:
            return ()
        if self.facts.writes is None:
            return self.operands
        return _collector(self.facts.writes)(self)

    @property
    def writes_elsewhere(self) -> bool:
        """Whether the op can write memory that is not that of an operand, by an address."""
        return "writes" in self.effects and self.facts.writes is None


class Synchronising:
    """What ops that wait for other threads derive from, besides `Operation`.

    They wait for all threads of the `block`, for `lanes` of their warp or warpgroup, for `some`
    threads of the block, which the op does not name, or for the end of a `phase`.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def called(self) -> str:
            """The name in the language."""

        @property
        def location(self) -> Location | None:
            """The place in the source."""

    @property
    def meets(self) -> Literal["block", "lanes", "some", "phase"]:
        """What the op waits for."""
        return "lanes"


_ROLES: Final = {
    "operands": re.compile(r"\bValue\b"),
    "defined": re.compile(r"\bResult\b"),
    "defined_inside": re.compile(r"\bArgument\b"),
    "regions": re.compile(r"\bRegion\b"),
}
"""Properties of an op, and the word in a field's annotation that assigns it to a property."""


def _getter(fields: dict[str, str]) -> _Getter:
    """A function that returns the values in these fields of an op, in order.

    Passes query every op, so the usual cases are as fast as Python allows.
    """
    names = tuple(fields)
    several = [name for name, text in fields.items() if text.startswith("tuple")]
    if len(several) > 1 or any("|" in text for text in fields.values()):
        return _collector(names)
    if several:
        at = names.index(several[0])
        return _around(_fixed(names[:at]), attrgetter(several[0]), _fixed(names[at + 1 :]))
    return _fixed(names)


def _fixed(names: Sequence[str]) -> _Getter:
    """The getter for fields with one value each."""
    if not names:
        return lambda op: ()
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda op: (get(op),)


def _around(before: _Getter, several: _Getter, after: _Getter) -> _Getter:
    """The getter for fields of which one has several values."""
    return lambda op: (*before(op), *several(op), *after(op))


def _collector(names: Sequence[str]) -> _Getter:
    def collect(op: Any) -> tuple[Any, ...]:
        found: list[Any] = []
        for name in names:
            item = getattr(op, name)
            if isinstance(item, tuple):
                found += item
            elif isinstance(item, (Value, Region)):
                found.append(item)
        return tuple(found)

    return collect
