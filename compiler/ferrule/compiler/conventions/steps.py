"""Properties of a convention or of one of its steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, get_args

from ferrule.compiler.conventions.base import Frames
from ferrule.compiler.conventions.c.callbacks import Callback, UserData
from ferrule.compiler.conventions.c.outs import Out
from ferrule.compiler.conventions.protocol import CallingConvention
from ferrule.compiler.hostcode import HostCode, Undefined
from ferrule.compiler.wrapper.results import result_parts
from ferrule.specs import AnyValue, Param, Tensor

_PLAIN: Final = (str, int, float, type(None), Out, Callback, UserData, *get_args(Param))
"""What has no arguments inside."""
_PARTS: Final = (
    "steps",
    "choices",
    "function",
    "arguments",
    "returns",
    "fails",
    "text",
    "fields",
    "value",
    "place",
)
"""Where a convention has others, and where a call or an argument has arguments."""


def allocates(convention: object) -> bool:
    """Whether a convention has temporaries, itself or one of its steps."""
    inner = _steps(convention)
    return bool(getattr(convention, "temporaries", ())) or any(map(allocates, inner))


def streams_of(convention: object) -> Iterator[Param]:
    """The stream parameters of the launches in a convention or its steps."""
    stream = getattr(convention, "stream", None)
    if stream is not None:
        yield stream
    for each in _steps(convention):
        yield from streams_of(each)


def gives_tensors(convention: CallingConvention) -> bool:
    """Whether it returns tensors that it makes, or values that can be such tensors."""
    parts = (each for result in convention.results() for each in result_parts(result))
    return any(isinstance(each, Tensor | AnyValue) for each in parts)


def teller(convention: object) -> str:
    """The function that a convention calls, or the name of the convention, for errors."""
    function = getattr(convention, "function", None)
    if function is None:
        return type(convention).__name__
    return function if isinstance(function, str) else teller(function)


def undefined(convention: object) -> Iterator[str]:
    """The functions that a convention, or one of its steps, calls and that are not defined yet."""
    inner = _steps(convention)
    function, code = getattr(convention, "function", None), getattr(convention, "code", None)
    if isinstance(code, HostCode) and isinstance(code.source, Undefined):
        yield str(function)
    for each in inner if isinstance(function, str | None) else (*inner, function):
        yield from undefined(each)


def places_of(convention: object) -> Iterator[Out | Callback]:
    """The `Out`s and callbacks of a convention and its steps."""
    for each in _inside(convention):
        if isinstance(each, Out | Callback):
            yield each
        elif isinstance(each, UserData):
            yield each.callback


def without_context(convention: object) -> Callback | None:
    """A callback with a context for which no C function gets a `void*` to hand through.

    All callbacks that are not kept have the same one, and so have all that are kept.
    """
    callbacks = [each for each in places_of(convention) if isinstance(each, Callback)]
    handed = [each.callback for each in _inside(convention) if isinstance(each, UserData)]
    kinds = {each.handle is None for each in handed}
    for each in callbacks:
        if each.context is not None and (each.handle is None) not in kinds:
            return each
    return None


def frames_of(convention: object) -> Frames:
    """Room for the callbacks with a context of a convention and its steps."""
    places = (each for each in places_of(convention) if isinstance(each, Callback))
    found = {id(each): each for each in places if each.context is not None}
    kept = tuple(each for each in found.values() if each.handle is not None)
    return Frames(len(found) - len(kept), kept)


def objects_of(convention: object) -> tuple[Tensor, ...]:
    """The tensors of the signature whose objects a convention or its steps need."""
    found = (each for part in _inside(convention) for each in getattr(part, "objects", ()))
    return tuple({id(each): each for each in found}.values())


def has_endings(convention: object) -> bool:
    """Whether something must be done at the end of a call, whether or not it fails."""
    return any(getattr(each, "needs_end", False) for each in _inside(convention))


def _inside(part: object) -> Iterator[object]:
    """A convention, its steps, and their arguments at any depth."""
    yield part
    if isinstance(part, tuple):
        for each in part:
            yield from _inside(each)
        return
    if isinstance(part, _PLAIN):
        return
    for name in _PARTS:
        yield from _inside(getattr(part, name, ()))


def _steps(convention: object) -> tuple[object, ...]:
    return (*getattr(convention, "steps", ()), *getattr(convention, "choices", ()))
