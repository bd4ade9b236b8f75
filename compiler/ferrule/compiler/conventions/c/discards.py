"""Refuses a call in which C may write to memory that nobody reads afterwards.

A `Reference` is made anew for each call, so what C leaves there is gone when the call returns.
This is only allowed where somebody has said it: the Reference says `reads_only` or `discards`, a
field in it is an `Out`, or the code itself shows that the function does not write there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ferrule.compiler.conventions.arguments import Cast, InMemory
from ferrule.compiler.conventions.c.host_arguments import CArgument, Reference
from ferrule.compiler.conventions.c.outs import Key, OutField, OutValue
from ferrule.compiler.conventions.c.structs import Array, Struct, fields_of
from ferrule.compiler.conventions.c.texts import CString
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.hostcode.promises import Promised
from ferrule.specs import Compound, Scalar, Sym

_WORDS: Final = (
    "reads_only=True says that it writes nothing there, as `const` does in C; discards=True that "
    "nobody wants what it writes"
)


def check_references(
    signature: str, function: str, arguments: Sequence[tuple[CArgument, Sequence[Promised]]]
) -> None:
    """Raise CompileError for a Reference through which a function may write what nobody gets.

    `arguments` are those of the function, with what its code promises of each.
    """
    for position, (argument, promised) in enumerate(arguments):
        only_read = any(each.reads_only for each in promised)
        for each in _unsaid(argument):
            if only_read and each is argument:
                continue
            where = "" if each is argument else "a field of "
            raise CompileError(
                Diagnostic(
                    f"{signature}: {function} may write through {where}argument #{position}, a "
                    f"Reference, and nobody gets what it writes",
                    hint=_instead(each.value),
                    notes=(_WORDS,),
                )
            )


def as_read(argument: CArgument) -> CArgument:
    """An argument that the function takes as a pointer to `const`."""
    if not isinstance(argument, Reference) or [*_unsaid(argument)] != [argument]:
        return argument
    return Reference(argument.value, reads_only=True)


def is_written(argument: CArgument) -> bool:
    """Whether an argument has fields that are read after the call, since C changes them."""
    return any(isinstance(each, OutField) for each in fields_of(argument))


def _unsaid(argument: CArgument) -> Iterator[Reference]:
    """The References in an argument that do not say whether C writes there.

    What one says counts for those inside of it as well.
    """
    if isinstance(argument, Struct):
        for each in argument.fields:
            yield from _unsaid(each)
    if not isinstance(argument, Reference) or argument.reads_only or argument.discards:
        return
    if not is_written(argument.value):
        yield argument
    yield from _unsaid(argument.value)


def _instead(value: CArgument) -> str:
    """The hint for a value that C changes."""
    match value:
        case Cast(dtype=dtype) | Scalar(dtype=dtype):
            return _out(dtype.name)
        case Sym(key=Key(), name=name):
            return f"give it the Out {name!r} itself"
        case Sym(width=32):
            return _out("int32")
        case int() | Sym() | Compound():
            return _out("int64")
        case OutValue(out=out):
            return f"give it the Out {out.name!r} itself"
        case CString():
            return "give it a conventions.Out(conventions.CString)"
        case Array():
            return "give it the .data of a result, specs.Tensor('name', (length,), dtype)"
        case Struct():
            return "a field that it changes is conventions.Out(dtype).field"
    if isinstance(value, InMemory):
        return "give it the .data of a result, specs.Tensor('name', (bytes,), 'uint8')"
    return "give it a conventions.Out('pointer')"


def _out(dtype: str) -> str:
    return f"give it a conventions.Out({dtype!r}), which begins as its initial=…"
