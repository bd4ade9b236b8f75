"""The way of a compilation of the language through the cache: its key, and what makes it again.

The same call of `compile` again in a process is found without making its key again.  As for a
direct call, what the function depends on is watched: while nothing of it has changed, the key of a
call with the same examples is the same.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from ferrule.compiler.cache import settings
from ferrule.compiler.cache.encoding import PLAIN, Encoder, named
from ferrule.compiler.cache.keys import Key, Uncacheable, key_of
from ferrule.compiler.cache.through import COUNTS, MEMORY, Wanted, log
from ferrule.compiler.cache.toolchain import parts_of
from ferrule.compiler.options import Options
from ferrule.language.cachekeys.walk import Walk
from ferrule.language.dependencies.witness import Witness
from ferrule.runtime.devices import emulated_arch
from ferrule.runtime.forks import ForkLock
from ferrule.specs import DType, Sym
from ferrule.specs.deferred import dataclass
from ferrule.specs.fakes import FakeTensor

if TYPE_CHECKING:
    from ferrule.language.compilation import Job
    from ferrule.runtime import Function


def key_of_job(job: Job) -> Key:
    """The key of a compilation as everything is now.  Raises Uncacheable."""
    return _key(job, None)


def watched(job: Job) -> tuple[Key, Witness]:
    """The key of a compilation, and a witness of all that is in it.  Raises Uncacheable."""
    witness = Witness()
    return _key(job, witness), witness


def _key(job: Job, witness: Witness | None) -> Key:
    options, examples = job.options, job.examples
    walk = Walk(witness, places=not options.strip_paths or options.generate_line_info)
    walk.function(job.function)
    signature = job.signature
    ways = signature.positional_only, signature.keyword_only
    walk.add(
        "the arguments", [signature.name, list(signature.params), *ways, list(signature.requires)]
    )
    walk.add("the constants", [examples.constants, examples.variadic])
    walk.add("the classes of the arguments", [(list(p), c) for p, c in examples.classes.items()])
    parts = {**walk.finish(), **parts_of(options)}
    return key_of(named(job.function), parts)


Asked: TypeAlias = "tuple[object, ...]"

_MOST: Final = 8
"""The number of calls that are known of a function."""
_UNCHANGING: Final = (FakeTensor, Sym)
_ENVIRONMENT: Final = (
    *("FERRULE_TARGET", "FERRULE_GPU_ARCH", "FERRULE_MLIR", "CUDA_HOME", "CUDA_PATH", "PATH"),
    *(settings.REMOTE, settings.FOLDER),
)
"""What chooses how and where something is compiled, and with which tools."""


@dataclass(frozen=True, slots=True)
class _Known:
    digest: str
    witness: Witness


_CALLS: Final[WeakKeyDictionary[types.FunctionType, dict[Asked, _Known]]] = WeakKeyDictionary()
_LOCK: Final = ForkLock()


def asked(args: Sequence[Any], kwargs: Mapping[str, Any], options: object) -> Asked | None:
    """What a call asks for, to be compared in this process; None if it may change."""
    if not isinstance(options, str | Options | None):
        return None
    values = (*args, *kwargs.values())
    if not all(map(_stays, values)):
        return None
    environment = tuple(map(os.environ.get, _ENVIRONMENT))
    try:
        told, here = Encoder().items("", values), os.getcwd()
    except (Uncacheable, OSError):
        return None
    return told, tuple(kwargs), options, environment, here, emulated_arch()


def _stays(value: Any) -> bool:
    """Whether an example is told by its fields, and they stay as they are."""
    kind = type(value)
    return (
        kind in _UNCHANGING or isinstance(value, DType) or (kind in PLAIN and kind is not bytearray)
    )


def recall(function: Callable[..., Any], call: Asked) -> Function | None:
    """The function of a call that was made before, if nothing has changed since."""
    with _LOCK:
        known = _CALLS.get(function, {}).get(call)  # type: ignore[call-overload]
    if known is None or not (known.witness.same() or known.witness.read_again()):
        return None
    loaded = MEMORY.get(known.digest)
    if loaded is None:
        return None
    COUNTS.hits += 1
    log(f"hit in memory: {function.__name__}")
    found: Function = loaded.afresh().function()
    return found


def remember(function: Callable[..., Any], call: Asked, wanted: Wanted) -> None:
    """Remember a call whose function was in the cache."""
    if wanted.watched is None:
        return
    key, witness = wanted.watched()
    with _LOCK:
        calls = _CALLS.setdefault(function, {})  # type: ignore[arg-type]
        while len(calls) >= _MOST:
            calls.pop(next(iter(calls)))  # the oldest
        calls[call] = _Known(key.digest, witness)
