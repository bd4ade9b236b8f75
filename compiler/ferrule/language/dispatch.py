"""Free dtypes: a function is compiled for each combination of them, and a call selects one.

Inside each body the dtypes are known, so `if a.dtype == fe.Float16:` keeps one branch.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import product
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.language.examples import signature_of
from ferrule.specs import DType, Signature
from ferrule.specs.deferred import dataclass
from ferrule.specs.fakes import FreeFakeTensor
from ferrule.specs.free_dtypes import DTypeSym
from ferrule.specs.text import marked

MOST: Final = 64
"""The largest number of dtype combinations for one function."""

Choice = Mapping[DTypeSym, DType]


@dataclass(frozen=True, slots=True)
class FreeExamples:
    """Examples in which dtypes are free: the arguments by name, and the symbols in them."""

    arguments: inspect.BoundArguments
    symbols: tuple[DTypeSym, ...]

    def choices(self) -> Iterator[Choice]:
        """All combinations; the last symbol varies fastest."""
        for dtypes in product(*(symbol.dtypes for symbol in self.symbols)):
            yield dict(zip(self.symbols, dtypes, strict=True))

    def chosen(self, choice: Choice) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of one combination, for an ordinary compilation."""
        chooser = _Chooser(choice)
        bound = copy.copy(self.arguments)
        bound.arguments = {
            name: chooser.value(value, name) for name, value in self.arguments.arguments.items()
        }
        return bound.args, bound.kwargs


def free_examples(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> FreeExamples | None:
    """The examples, if any dtype in them is free.

    A number whose parameter is annotated with a free dtype has that dtype.  Raises CompileError for
    a symbol that no tensor has, two symbols of one name, and too many combinations.
    """
    signature = signature_of(function)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    for name in bound.arguments:
        annotation = signature.parameters[name].annotation
        if isinstance(annotation, DTypeSym):
            bound.arguments[name] = annotation
    symbols = tuple(dict.fromkeys(_symbols(tuple(bound.arguments.values()))))
    if not symbols:
        return None
    chosen = set(_symbols(tuple(bound.arguments.values()), of_tensors=True))
    _check(function.__name__, symbols, chosen)
    return FreeExamples(bound, symbols)


def _check(function: str, symbols: Sequence[DTypeSym], chosen: set[DTypeSym]) -> None:
    for symbol in symbols:
        if symbol not in chosen:
            dtypes = " | ".join(dtype.name for dtype in symbol.dtypes)
            raise CompileError(
                Diagnostic(
                    f"{function}: no tensor has the free dtype {symbol.name or dtypes}, so a call "
                    f"cannot choose it",
                    expected="a tensor whose dtype it is: fe.make_fake_tensor(T, ...)",
                    hint="for numbers compile one function for each and join them: fe.overload",
                )
            )
    names = [symbol.name for symbol in symbols if symbol.name is not None]
    for name in names:
        if names.count(name) > 1:
            raise CompileError(f"{function}: two free dtypes are called {name}, with other dtypes")
    count = math.prod(len(symbol.dtypes) for symbol in symbols)
    if count > MOST:
        raise CompileError(
            Diagnostic(
                f"{function}: its free dtypes have {count} combinations, each of which is a body",
                expected=f"at most {MOST}",
                hint="give parameters that always agree the same fe.sym_dtype(...)",
            )
        )


def _items(value: Any) -> Sequence[Any]:
    """The items of a tuple, list or dataclass."""
    if isinstance(value, (tuple, list)):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, (type, FreeFakeTensor, DTypeSym)):
        return [getattr(value, each.name) for each in dataclasses.fields(value)]
    return ()


def _symbols(value: Any, *, of_tensors: bool = False) -> Iterator[DTypeSym]:
    """The symbols in a value; with `of_tensors`, only those of tensors."""
    match value:
        case DTypeSym():
            yield from () if of_tensors else (value,)
        case FreeFakeTensor(symbol=symbol):
            yield symbol
        case _:
            for item in _items(value):
                yield from _symbols(item, of_tensors=of_tensors)


@dataclass(slots=True)
class _Chooser:
    """Replaces symbols by dtypes, and records the tensor that determines each symbol."""

    choice: Choice
    known: dict[DTypeSym, str] = field(default_factory=dict)

    def value(self, value: Any, name: str) -> Any:
        """The value with the dtypes of this combination."""
        match value:
            case DTypeSym():
                return self.choice[value]
            case FreeFakeTensor(symbol=symbol):
                return value.with_dtype(self.choice[symbol], self.expected(symbol, name))
        items = _items(value)
        if not any(True for _ in _symbols(value)):
            return value
        chosen = [self.value(item, f"{name}[{i}]") for i, item in enumerate(items)]
        return _rebuilt(value, chosen)

    def expected(self, symbol: DTypeSym, name: str) -> str:
        """The expected dtype in messages."""
        owner = self.known.setdefault(symbol, name)
        if owner != name:
            return f"{self.choice[symbol].name} like {owner}"
        *names, last = (dtype.name for dtype in symbol.dtypes)
        return f"{', '.join(names)} or {last}" if names else last


def _rebuilt(value: Any, items: list[Any]) -> Any:
    if isinstance(value, tuple):
        return type(value)._make(items) if hasattr(value, "_make") else tuple(items)
    if isinstance(value, list):
        return items
    changed = copy.copy(value)
    for each, item in zip(dataclasses.fields(value), items, strict=True):
        object.__setattr__(changed, each.name, item)
    return changed


# ---- what messages show ----


_WORD: Final = re.compile(r"\w+|\W")


def shown(signatures: Sequence[Signature], choices: Sequence[Choice]) -> str:
    """The signature after the name: `(a: Tensor([n], T), k: int32) where T: float16 | float32`.

    `signatures` are those of the combinations, in order.
    """
    names = _names(choices[0], str(signatures[0]))
    heads = [_head(signature) for signature in signatures]
    text = _merged(heads, choices, names)
    if any(signature.result is not None for signature in signatures):
        results = [signature.kind_of_result() for signature in signatures]
        text += f" -> {_merged(results, choices, names)}"
    declared = (
        f"{name}: {' | '.join(dtype.name for dtype in symbol.dtypes)}"
        for symbol, name in names.items()
    )
    return f"{text} where {', '.join(declared)}"


def _names(symbols: Choice, taken: str) -> dict[DTypeSym, str]:
    words = {*_WORD.findall(taken), *(symbol.name for symbol in symbols)}
    fresh = (name for name in ("T", "U", "V", *(f"T{i}" for i in range(MOST))) if name not in words)
    return {symbol: symbol.name or next(fresh) for symbol in symbols}


def _head(signature: Signature) -> str:
    described = [signature.describe(param) for param in signature.arguments]
    return f"({', '.join(marked(described, signature.unnamed, signature.positional))})"


def _merged(texts: Sequence[str], choices: Sequence[Choice], names: dict[DTypeSym, str]) -> str:
    """Texts that differ only in names of dtypes, as one text; other texts side by side."""
    split = [_WORD.findall(text) for text in texts]
    if len(set(map(len, split))) > 1:
        return " | ".join(dict.fromkeys(texts))
    known = {tuple(each[symbol].name for each in choices): name for symbol, name in names.items()}
    columns = zip(*split, strict=True)
    return "".join(
        column[0] if len(set(column)) == 1 else known.get(column, " | ".join(dict.fromkeys(column)))
        for column in columns
    )


def told(error: CompileError, choice: Choice) -> CompileError:
    """The error of one combination, with a note about its dtypes."""
    names = _names(choice, "")
    where = ", ".join(f"{names[symbol]} = {dtype.name}" for symbol, dtype in choice.items())
    diagnostic = error.diagnostic
    return CompileError(replace(diagnostic, notes=(*diagnostic.notes, f"compiled for {where}")))
