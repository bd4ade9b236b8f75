"""The schema of an operator, in torch's language of function signatures.

Source of the syntax: the README of `native` functions in PyTorch (`aten/src/ATen/native`).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from string import ascii_lowercase

from ferrule import specs
from ferrule.compiler.operators.torch.plans import Argument, Kind, Plan


def schema_of(plan: Plan) -> str:
    """The schema without the namespace: `rms_norm(Tensor x, Tensor(a!) y, float eps=1e-06) -> ()`.

    Raises ValueError for more written tensors than a schema has letters.
    """
    arguments = ", ".join(_arguments(plan))
    return f"{plan.short}({arguments}) -> {_results(plan)}"


def _arguments(plan: Plan) -> Iterator[str]:
    letters = _letters()
    named = False
    for each in plan.arguments:
        if each.keyword_only and not named:
            named = True
            yield "*"
        yield _argument(each, next(letters) if each.written else None)


def _letters() -> Iterator[str]:
    yield from ascii_lowercase
    for first in ascii_lowercase:
        for second in ascii_lowercase:
            yield first + second


def _argument(argument: Argument, letter: str | None) -> str:
    kind = argument.kind.value
    if letter is not None:
        kind = kind.replace("Tensor", f"Tensor({letter}!)")
    question = "?" if argument.optional else ""
    default = "" if argument.default is specs.REQUIRED else f"={_default(argument)}"
    return f"{kind}{question} {argument.name}{default}"


def _default(argument: Argument) -> str:
    value = argument.default
    if value is None and argument.kind is Kind.ADDRESS and not argument.optional:
        return "0"
    match value:
        case None | bool():
            return str(value)
        case str():
            return f'"{"".join(map(_letter, value.encode()))}"'
        case int() | float() if isfinite(value):
            return repr(value)
        case tuple() | list():
            return f"[{', '.join(map(str, value))}]"
    raise ValueError(
        f"the default {value!r} of {argument.name} has no form in torch's schemas; compile the "
        f"function without it"
    )


def _letter(byte: int) -> str:
    """A byte of UTF-8 in a text of a schema: torch's parser knows the octal escapes of C."""
    letter = chr(byte)
    return letter if letter.isalnum() and letter.isascii() else f"\\{byte:03o}"


def _results(plan: Plan) -> str:
    kinds = [*(each.value for each in plan.results), *("Tensor" for _ in plan.made)]
    return kinds[0] if len(kinds) == 1 else f"({', '.join(kinds)})"
