"""The sizes of a C function's parameters that are declared as arrays, such as `double x[8]`.

C takes `double x[8]` for `double*`, and a compiler does not show the size in the function's type.
So the declaration is found in the text behind the preprocessor and declared once more, as a
variable, whose type the compiler shows. What it does not show is not checked: sizes that are
parameters (`x[n]`), functions that macros or templates write, K&R's parameters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.specs import Tensor, params
from ferrule.specs.conditions import compare
from ferrule.specs.intervals import interval

if TYPE_CHECKING:
    from ferrule.compiler.conventions import CArgument, CFunction, Require

_TEXTS: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'')
_INSIDE: Final = re.compile(r"\[\s*(?:(?:static|const|restrict|volatile|__restrict\w*)\b\s*)+")
_NAME: Final = re.compile(r"[A-Za-z_]\w*(?=\s*(?:\)\s*)*(?:\[|$))")
_ARRAY: Final = re.compile(r"\(\*\)((?:\[\d+\])+)")
_ENDS: Final = re.compile(r"\s*(?:__attribute__\s*\(\(.*?\)\)|noexcept|const)*\s*[{;]", re.DOTALL)


def declared_arrays(
    text: str, function: str, shown: Callable[[Sequence[str]], Sequence[str]]
) -> dict[int, tuple[str, int]]:
    """For each parameter that is an array of known size: its declaration, and its elements.

    `text` is the source behind the preprocessor; `shown` gives the compiler's message for each line
    at the end of the source.
    """
    for listed in _declarations(text, function.rpartition("::")[2]):
        questions = [_question(position, each) for position, each in enumerate(listed)]
        found = {}
        for position, words in enumerate(shown(questions)):
            if (sizes := _ARRAY.search(words)) is not None:
                count = prod(map(int, re.findall(r"\d+", sizes[1])))
                found[position] = " ".join(listed[position].split()), count
        if found:
            return found
    return {}


def _declarations(text: str, name: str) -> Iterator[list[str]]:
    """The parameters of each declaration of a function, definitions first."""
    # Brackets and names in a literal mean nothing; the positions stay.
    text = _TEXTS.sub(lambda found: " " * len(found[0]), text)
    found = []
    for each in re.finditer(rf"(?<=[\w*&>\s])\b{re.escape(name)}\s*\(", text):
        end = _closed(text, each.end())
        if (after := _ENDS.match(text, end)) is not None and _is_type(text[: each.start()]):
            found.append((after[0].endswith(";"), _listed(text[each.end() : end - 1])))
    yield from (listed for _, listed in sorted(found, key=lambda each: each[0]))


def _is_type(before: str) -> bool:
    """Whether a text ends with what a declaration has before a name, and no call."""
    word = re.search(r"(\w+|[*&>])\s*$", before)
    return word is not None and word[1] not in ("return", "else", "do", "goto", "case")


def _closed(text: str, at: int) -> int:
    """The position behind the parenthesis that closes one before `at`."""
    depth = 1
    while depth and at < len(text):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return at


def _listed(text: str) -> list[str]:
    """The items of a list of parameters."""
    found, depth = [""], 0
    for letter in text:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return found


def _question(position: int, declaration: str) -> str:
    """A line whose error shows the type of the parameter as that of a variable."""
    declaration = " ".join(_INSIDE.sub("[", declaration).split())
    declaration = re.sub(r"\bregister\b", "", declaration).partition("=")[0].strip()
    name = _NAME.search(declaration)
    if name is None:
        return ""
    own = f"ferrule_array_{position}"
    declared = f"{declaration[: name.start()]}{own}{declaration[name.end() :]}"
    return f"static void ferrule_a{position}(void) {{ extern {declared}; float f = &{own}; }}"


def checked_sizes(called: CFunction, arrays: Mapping[int, tuple[str, int]]) -> tuple[Require, ...]:
    """The requirements of a call that its tensors have as many elements as are declared.

    Raises CompileError for a tensor that always has fewer.
    """
    from ferrule.compiler.conventions import Require
    from ferrule.compiler.conventions.c.host_arguments import values_of

    found, position = [], 0
    for each in called.arguments:
        tensor = _whole(each)
        declared = arrays.get(position)
        position += values_of(each)
        if tensor is None or declared is None or tensor.dtype.bits < 8:
            continue
        text, count = declared
        low, high = interval(tensor.numel)
        if high < count:
            raise CompileError(_too_few(called.function, position - 1, tensor, text, count))
        if low < count:
            words = f"{called.function} takes {text}, and {tensor.name} has fewer elements"
            found.append(Require(compare("ge", tensor.numel, count), words))
    return tuple(found)


def _too_few(function: str, position: int, tensor: Tensor, text: str, count: int) -> Diagnostic:
    return Diagnostic(
        f"argument #{position} of {function} is {tensor.name}.data, of {tensor.numel} elements, "
        f"but it takes {text}",
        expected=f"a tensor of at least {count} elements",
        hint="C reads or writes as many as the array is declared with: say the size in the spec",
    )


def _whole(argument: CArgument) -> Tensor | None:
    """The tensor whose first element's address an argument is."""
    if isinstance(argument, Tensor):
        return argument
    if isinstance(argument, params.Data) and argument.offset == 0:
        return argument.tensor
    return None
