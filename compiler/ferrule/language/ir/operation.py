"""What every op of the kernel IR says about itself: its operands, its effects, where it may be.

An op is a frozen dataclass derived from `Operation`.  The annotations of its fields say what they
hold:

* `Value`, `Value | None`, `tuple[Value, ...]`: operands, in the order of the fields;
* `Result`: what the op defines for the ops behind it;
* `Argument`: what it defines for its own regions;
* `Region`: a region, in the order of the text.

Passes ask for effects and never for a list of ops, so a new op needs no entry in any of them.  What
an op does not say is taken for the worst: it has every effect, differs between threads, and may
take long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias, get_args

from ferrule.language.ir.values import Region, Value

Result: TypeAlias = Value
"""A value that an op defines for those behind it."""
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
"""What running an op can do, besides giving its results."""
Effects = frozenset[Effect]

EVERY: Final[Effects] = frozenset(get_args(Effect))
UNSEEN: Final[Effects] = frozenset(("reads", "makes", "blocks", "asks"))
"""Effects that nobody sees: an op with no others may be left out where its result is not used."""

Place = Literal["anywhere", "kernel", "host"]
_Getter: TypeAlias = "Callable[[Any], tuple[Any, ...]]"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is so for every op of a class.

    `writes`: the operands whose memory is written, by the names of their fields; None: any.
    `uniform`: the results are the same for all threads of a block if operands and memory are.
    `speculative`: it may run although its result is not wanted.  `text`: how it is printed; see
    `printer`.
    """

    effects: Effects = EVERY
    writes: tuple[str, ...] | None = None
    uniform: bool = False
    speculative: bool = False
    place: Place = "anywhere"
    text: str = ""


class Operation:
    """Base of all ops.  The facts of a class are the keywords of its definition."""

    __slots__ = ()
    facts: ClassVar[Facts] = Facts()
    fields: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The names of the fields that make each of the properties below."""
    nests: ClassVar[bool] = False
    """Whether it has regions."""

    if TYPE_CHECKING:  # made of the annotations, by `__init_subclass__`

        @property
        def operands(self) -> tuple[Value, ...]:
            """The values that the op itself reads, without what its regions yield."""

        @property
        def defined(self) -> tuple[Value, ...]:
            """The values that the op defines for those behind it."""

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
    ) -> None:
        super().__init_subclass__()
        if "facts" in vars(cls):
            return  # `dataclass` makes each class a second time, with slots, and copies what it has
        cls.facts = Facts(frozenset(effects), writes, uniform, speculative, place, text)
        annotations = {name: str(text) for name, text in vars(cls)["__annotations__"].items()}
        fields: dict[str, tuple[str, ...]] = {}
        for role, word in _ROLES.items():
            found = {name: text for name, text in annotations.items() if word.search(text)}
            fields[role] = tuple(found)
            setattr(cls, role, property(_getter(found)))
        cls.fields, cls.nests = fields, bool(fields["regions"])

    @property
    def effects(self) -> Effects:
        """What running this op can do."""
        return self.facts.effects

    @property
    def is_uniform(self) -> bool:
        """Whether the results are the same for all threads if operands and memory are."""
        return self.facts.uniform

    @property
    def is_speculative(self) -> bool:
        """Whether the op may run although its result is not wanted."""
        return self.facts.speculative

    @property
    def is_seen(self) -> bool:
        """Whether somebody can see that the op ran, other than by its results."""
        return not self.effects <= UNSEEN

    @property
    def written(self) -> tuple[Value, ...]:
        """The operands whose memory the op can write."""
        if "writes" not in self.effects:
            return ()
        if self.facts.writes is None:
            return self.operands
        values = (getattr(self, name) for name in self.facts.writes)
        return tuple(value for value in values if value is not None)


_ROLES: Final = {
    "operands": re.compile(r"\bValue\b"),
    "defined": re.compile(r"\bResult\b"),
    "defined_inside": re.compile(r"\bArgument\b"),
    "regions": re.compile(r"\bRegion\b"),
}
"""Properties of an op, and the word in the annotation of a field that makes it part of one."""


def _getter(fields: dict[str, str]) -> _Getter:
    """Gives the values in these fields, in order, of an op.

    Passes ask every op, so what most ops have is as fast as Python allows.
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
    """Of fields with one value each."""
    if not names:
        return lambda op: ()
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda op: (get(op),)


def _around(before: _Getter, several: _Getter, after: _Getter) -> _Getter:
    """Of fields of which one has several values."""
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
