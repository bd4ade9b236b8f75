"""Several objects and archives as one code: their symbols see each other, and nothing else does.

They are linked here: each object is embedded by itself, and what it takes of another one refers to
the place there.  A function brings the objects that it needs, over any number of steps, and of an
archive nothing else; so an unused member may need what does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from hashlib import sha256

from ferrule.compiler.artefacts import Embedded
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.hostcode.embedding import PREFIX, Piece
from ferrule.runtime.binaries.archive import read_members
from ferrule.runtime.binaries.elf import ARCHIVE, ObjectFileError
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Objects:
    """Objects that are used together, the members of archives last.

    `places` has for each symbol the position of the piece that defines it.  The first `named`
    pieces were named one by one, the others are members.
    """

    digest: str
    pieces: tuple[Piece, ...] = field(repr=False, compare=False)
    named: int = field(compare=False)
    places: Mapping[str, int] = field(repr=False, compare=False)
    libraries: tuple[str, ...] = ()
    functions: Mapping[str, int] = field(repr=False, compare=False, default_factory=dict)
    _made: dict[int, Embedded] = field(repr=False, compare=False, default_factory=dict)

    def symbol(self, name: str) -> str:
        """The name of a function in the object that it becomes a part of."""
        at = self.functions.get(name)
        return f"{PREFIX}{self.digest if at is None else self.pieces[at].digest}.{name}"

    def embedded(self, function: str | None = None) -> tuple[Embedded, ...]:
        """The pieces that a function needs; by default those that the named ones do.

        Raises CompileError for an object that cannot be embedded, and for a symbol that two define.
        """
        first = range(self.named) if function is None else (self.functions[function],)
        needed = self._closure(first)
        _check_once([self.pieces[at] for at in needed])
        return tuple(self._piece(at) for at in needed)

    def _closure(self, first: Sequence[int]) -> list[int]:
        found = dict.fromkeys(first)
        todo = list(first)
        while todo:
            piece = self.pieces[todo.pop()]
            for name in (*piece.undefined, *piece.weak):
                at = self.places.get(name)
                if at is not None and at not in found:
                    found[at] = None
                    todo.append(at)
        return list(found)

    def _piece(self, at: int) -> Embedded:
        if at not in self._made:
            piece = self.pieces[at]
            seen = {*piece.undefined, *piece.weak}.intersection(self.places)
            labels = {name: self.pieces[self.places[name]].defined[name] for name in sorted(seen)}
            self._made[at] = piece.embedded(labels)
        return self._made[at]


def joined(codes: Sequence[tuple[bytes, str]], libraries: Sequence[str]) -> Objects:
    """Objects and archives with their names for errors, as one code.

    Raises CompileError for what is neither, and if two of the objects define a symbol.
    """
    digest = sha256("".join(sha256(data).hexdigest() for data, _ in codes).encode()).hexdigest()
    plain = [Piece.of(*each, digest) for each in codes if not is_archive(each[0])]
    _check_once(plain)
    packed = [each for each in codes if is_archive(each[0])]
    pieces = (*plain, *(piece for each in packed for piece in _members(*each, digest)))
    places = _places(pieces, len(plain))
    functions = {
        name: places[name]
        for at, piece in enumerate(pieces)
        for name in piece.functions()
        if places.get(name) == at
    }
    return Objects(digest[:16], pieces, len(plain), places, tuple(libraries), functions)


def _members(data: bytes, what: str, digest: str) -> Iterator[Piece]:
    try:
        for at, (name, member) in enumerate(read_members(data)):
            # The position counts: an archive may have one object twice.
            yield Piece.of(member, f"{name} of {what}", f"{digest} {at} ")
    except ObjectFileError as error:
        raise CompileError(f"{what} cannot be embedded: {error}") from None


def is_archive(data: bytes) -> bool:
    """Whether these bytes begin like an archive."""
    return data.startswith(ARCHIVE)


def _places(pieces: Sequence[Piece], named: int) -> dict[str, int]:
    """The piece of each symbol, as a linker chooses: of the named ones a definition that is not
    weak, else the first; then the first member of an archive."""
    places: dict[str, int] = {}
    for at, piece in enumerate(pieces):
        for name in piece.defined:
            there = places.get(name)
            is_better = there is not None and name in pieces[there].weak and name not in piece.weak
            if there is None or (is_better and at < named):
                places[name] = at
    return places


def _check_once(pieces: Sequence[Piece]) -> None:
    """Raise CompileError if two of these define a symbol."""
    owners: dict[str, Piece] = {}
    for piece in pieces:
        for name in piece.defined.keys() - piece.weak:
            other = owners.setdefault(name, piece)
            if other is not piece:
                raise CompileError(
                    Diagnostic(
                        f"{other.what} and {piece.what} both define {name}",
                        hint="make it static in one of them, or give it another name",
                    )
                )
