"""Facts about types that only a compiler of CUDA C++ knows: the types of kernels' parameters, the
members of structs, and alignments.

Lines are added after the source that instantiate an incomplete template and take its size: this is
an error whose message shows the types or numbers in the template's arguments.  The members of a
struct have no names here: a structured binding binds more names than there are members, and the
types of the surplus names are errors, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Final

from ferrule.compiler.cuda.kernelfacts import Member
from ferrule.compiler.errors import CompileError
from ferrule.compiler.spelledtypes import VECTORS, parameter_list, read_type, split_list
from ferrule.frontends.cuda.requests import Request
from ferrule.frontends.sources import Source
from ferrule.specs.deferred import dataclass

_FILE: Final = "ferrule_types"
_TYPES, _NUMBERS = "ferrule_type", "ferrule_number"
_HEAD: Final = (
    f"template <class...> struct {_TYPES};",
    f"template <unsigned long long...> struct {_NUMBERS};",
)
_SHOWN: Final = re.compile(
    rf'^{_FILE}\((\d+)\).*?"(?:{_TYPES}|{_NUMBERS})<(.*?)>"'
    rf'(?: \(aka "(?:{_TYPES}|{_NUMBERS})<(.*?)>"\))?',
    re.MULTILINE,
)
_NO_MEMBER: Final = "<error-type>"
_MOST: Final = 64
"""The greatest number of members of a struct, and of elements of an array in one, that are
compared."""
_ARRAY: Final = re.compile(r"([^\[\]()]*?)\s*((?:\[\d+\])+)")
_AT_ONCE: Final = 20
"""The number of lines that are compiled together: a compiler stops after 100 errors, and a line
causes several."""
_UNNAMED: Final = re.compile(r"<unnamed>::|\(anonymous namespace\)::")
_TYPE_NAME: Final = re.compile(r"[A-Za-z_]\w*(?:::\w+)*")
_KNOWN: Final = frozenset({"void", *VECTORS})
_OLD: Final = ("c++03", "c++11", "c++14")

Ask = Callable[[Request], object]


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct: its size, its alignment, and its members that are numbers or addresses.

    `is_whole`: the members and their alignment explain all bytes between and after them.
    """

    members: tuple[Member, ...]
    is_whole: bool


def ask_types(
    request: Request, names: Sequence[str], ask: Ask
) -> dict[int, tuple[tuple[str, ...], tuple[str, ...]]]:
    """The types of the parameters of the kernels with these names, by the kernels' positions: as
    written, and with typedefs resolved."""
    said = _answers(request, [_shown([f"decltype(&{name})"]) for name in names], ask)
    shown = {
        at: (parameter_list(written) or (), parameter_list(plain) or ())
        for at, (written, plain) in said.items()
    }
    known = _named(request, [each for _, plain in shown.values() for each in plain], ask)
    return {at: (written, _plainly(plain, known)) for at, (written, plain) in shown.items()}


def _named(request: Request, types: Sequence[str], ask: Ask) -> dict[str, str]:
    """The types that typedefs in `types` stand for: the compiler does not resolve a typedef inside
    a type that is const."""
    reads = [read_type(each) for each in types if "const" in each]
    names = [
        name for name in dict.fromkeys(each.name for each in reads if each.dtype is None)
        if _TYPE_NAME.fullmatch(name) and name not in _KNOWN
    ]  # fmt: skip
    said = _answers(request, [_shown([each]) for each in names], ask)
    return {names[at]: plain for at, (written, plain) in said.items() if plain != written}


def _plainly(types: Sequence[str], known: Mapping[str, str]) -> tuple[str, ...]:
    """The types with these names replaced by the types that they stand for."""
    found = list(types)
    for name, plain in known.items():
        pattern = rf"(?<![\w:]){re.escape(name)}(?![\w:])"
        found = [re.sub(pattern, plain, each) if "const" in each else each for each in found]
    return tuple(found)


def ask_members(request: Request, structs: Sequence[str], ask: Ask) -> dict[str, tuple[str, ...]]:
    """The types of the members of structs, with typedefs resolved, in order."""
    lines = [_bound(i, each, _MOST, _shown) for i, each in enumerate(structs)]
    said = _answers(_newer(request), lines, ask)
    listed = {structs[at]: list(split_list(plain)) for at, (_, plain) in said.items()}
    members = {
        name: [each for each in types if each != _NO_MEMBER]
        for name, types in listed.items()
        if types[-1] == _NO_MEMBER
    }
    known = _named(request, [each for types in members.values() for each in types], ask)
    return {name: _plainly(types, known) for name, types in members.items()}


def ask_alignments(
    request: Request,
    pointers: Sequence[str],
    structs: Mapping[str, tuple[str, ...]],
    ask: Ask,
) -> tuple[dict[str, int], dict[str, Struct]]:
    """The alignment behind pointers of these types, and the layout of structs, as far as the
    compiler shows them."""
    lines = [_numbered([f"__alignof__(*({_UNNAMED.sub('', each)})0)"]) for each in pointers]
    for number, (name, members) in enumerate(structs.items()):
        lines.append(_laid_out(number, name, members))
    said = _answers(_newer(request) if structs else request, lines, ask)
    numbers = {at: [*_numbers(text)] for at, (text, _) in said.items()}
    aligned = {each: numbers[i][0] for i, each in enumerate(pointers) if numbers.get(i)}
    behind = enumerate(structs.items(), len(pointers))
    placed = {name: _struct(members, numbers.get(i, [])) for i, (name, members) in behind}
    return aligned, {name: found for name, found in placed.items() if found is not None}


def _newer(request: Request) -> Request:
    """The request with C++17 or newer: earlier versions have no structured bindings."""
    return replace(request, std="c++17") if request.std in _OLD else request


def _answers(request: Request, lines: Sequence[str], ask: Ask) -> dict[int, tuple[str, str]]:
    """The compiler's output for the lines, by their positions: as written, and with typedefs
    resolved."""
    found: dict[int, tuple[str, str]] = {}
    for start in range(0, len(lines), _AT_ONCE):
        said = _answers_at_once(request, lines[start : start + _AT_ONCE], ask)
        found |= {start + at: each for at, each in said.items()}
    return found


def _answers_at_once(
    request: Request, lines: Sequence[str], ask: Ask
) -> dict[int, tuple[str, str]]:
    source = request.source
    # The compiler's errors name this file, by which they are told from those of the source.
    text = "\n".join([source.text, f'#line 1 "{_FILE}"', *_HEAD, *lines, ""])
    found: dict[int, tuple[str, str]] = {}
    try:
        ask(replace(request, source=Source(text, source.name, source.folder), kernels=()))
    except CompileError as error:
        for line, written, plain in _SHOWN.findall(str(error)):
            found.setdefault(int(line) - 1 - len(_HEAD), (written, plain or written))
    return found


def _shown(types: Iterable[str]) -> str:
    return f'static_assert(sizeof({_TYPES}<{", ".join(types)}>), "");'


def _numbered(numbers: Iterable[str]) -> str:
    return f'static_assert(sizeof({_NUMBERS}<{", ".join(numbers)}>), "");'


def _bound(number: int, struct: str, count: int, shown: Callable[[Iterable[str]], str]) -> str:
    """A function that binds `count` names to the members of a struct, and shows their types."""
    names = [f"ferrule_{i}" for i in range(count)]
    asked = shown(f"decltype({each})" for each in names)
    kind = _UNNAMED.sub("", struct)
    return (
        f"static __device__ void ferrule_asked_{number}({kind}& ferrule_all) "
        f"{{ auto& [{', '.join(names)}] = ferrule_all; {asked} }}"
    )


def _laid_out(number: int, struct: str, members: Sequence[str]) -> str:
    """A line that shows the size and alignment of a struct, and for each member its size, its
    alignment and that of the memory it points to."""
    if not members:
        return _numbered([])

    def shown(_: Iterable[str]) -> str:
        sizes = [part for i, each in enumerate(members) for part in _sizes_of(i, each)]
        whole = [f"sizeof({_UNNAMED.sub('', struct)})", "__alignof__(ferrule_all)"]
        return _numbered([*whole, *sizes])

    return _bound(number, struct, len(members), shown)


def _sizes_of(position: int, kind: str) -> Iterator[str]:
    """Expressions for the size of a member, its alignment (for an array, that of its elements), and
    the alignment of the memory to which it points."""
    element, lengths = _elements(kind)
    name, read = f"ferrule_{position}" + "[0]" * len(lengths), read_type(element)
    yield f"sizeof(ferrule_{position})"
    yield f"__alignof__({name})"
    is_known = read.stars == 1 and not read.is_function and read.name != "void"
    yield f"__alignof__(*{name})" if is_known else "1"


def _elements(kind: str) -> tuple[str, list[int]]:
    """The type of an array's elements, and its lengths; no lengths for a type that is not an
    array."""
    found = _ARRAY.fullmatch(kind)
    if found is None:
        return kind, []
    return found[1], [int(each) for each in re.findall(r"\d+", found[2])]


def _members_at(at: int, size: int, text: str, behind: int) -> Iterator[Member]:
    """The numbers and addresses in a member; of an array, those in each element."""
    element, lengths = _elements(text)
    kind, count = read_type(element), prod(lengths)
    if count and (kind.stars or kind.dtype is not None):
        step = size // count
        yield from (Member(at + i * step, element, behind) for i in range(min(count, _MOST)))


def _numbers(text: str) -> Iterator[int]:
    """The numbers in the output; empty if one of them is an error."""
    shown = [re.fullmatch(r"(\d+)[UuLl]*", each.strip()) for each in text.split(",")]
    if all(shown):
        yield from (int(each[1]) for each in shown if each is not None)


def _struct(members: Sequence[str], numbers: Sequence[int]) -> Struct | None:
    """The struct with its members one after the other, as C++ lays them out; None if that does not
    give its size: then it has bit-fields or a base class, or is packed."""
    if len(numbers) != 2 + 3 * len(members) or not members:
        return None
    total, align, *sizes = numbers
    found: list[Member] = []
    end = 0
    for i, text in enumerate(members):
        size, own, behind = sizes[3 * i : 3 * i + 3]
        # The next multiple of the member's alignment.
        at = -(-end // own) * own
        end = at + size
        found += _members_at(at, size, text, behind)
    return Struct(tuple(found), end == total) if -(-end // align) * align == total else None
