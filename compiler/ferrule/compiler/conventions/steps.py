"""What a convention does, itself or in one of its steps."""

from __future__ import annotations

from collections.abc import Iterator

from ferrule.compiler.conventions.protocol import CallingConvention
from ferrule.compiler.hostcode import HostCode, Undefined
from ferrule.specs import Param, Tensor


def allocates(convention: object) -> bool:
    """Whether a convention has temporaries, itself or one of its steps."""
    inner = _steps(convention)
    return bool(getattr(convention, "temporaries", ())) or any(map(allocates, inner))


def streams_of(convention: object) -> Iterator[Param]:
    """The parameters that say on which streams a convention launches, itself or in its steps."""
    stream = getattr(convention, "stream", None)
    if stream is not None:
        yield stream
    for each in _steps(convention):
        yield from streams_of(each)


def gives_tensors(convention: CallingConvention) -> bool:
    """Whether it makes tensors that it gives back."""
    return any(isinstance(result, Tensor) for result in convention.results())


def undefined(convention: object) -> Iterator[str]:
    """The functions that a convention calls, itself or one of its steps, and nobody has yet."""
    inner = _steps(convention)
    function, code = getattr(convention, "function", None), getattr(convention, "code", None)
    if isinstance(code, HostCode) and isinstance(code.source, Undefined):
        yield str(function)
    for each in inner if isinstance(function, str | None) else (*inner, function):
        yield from undefined(each)


def _steps(convention: object) -> tuple[object, ...]:
    return (*getattr(convention, "steps", ()), *getattr(convention, "choices", ()))
