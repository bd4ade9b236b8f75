"""Random numbers that a host function draws: what the generators of this process are like before
and after it, and who asks for a seed.

In each call they would be those of the recording.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

from ferrule.frontends.triton.recorded.reading import Reading

States = dict[str, Any]
"""What each generator is like, by its name."""

_SEEDS: Final = {
    "torch": ("initial_seed", "seed"),
    "torch.random": ("initial_seed", "seed"),
    "torch.cuda": ("initial_seed", "seed", "seed_all"),
    "torch.cuda.random": ("initial_seed", "seed", "seed_all"),
}
_OF_MEMORY: Final = {
    "torch._C": ("_overlaps", "_is_alias_of", "_to_dlpack"),
    "torch": ("to_dlpack",),
    "torch.utils.dlpack": ("to_dlpack",),
}
"""Functions that PyTorch tells nobody of."""


def states() -> States:
    """What the generators are like that a process has without making one."""
    found: States = {"Python's random": random.getstate()}
    if "numpy" in sys.modules:
        named = importlib.import_module("numpy.random").get_state(legacy=False)
        numbers = named.pop("state")
        found["np.random"] = (numbers["key"].tobytes(), numbers["pos"], *named.values())
    torch = sys.modules.get("torch")
    if torch is not None:
        found["torch's default generator"] = _of_torch(torch, torch.default_generator)
        if torch.cuda.is_initialized():
            for at, each in enumerate(torch.cuda.default_generators):
                found[f"torch's generator of cuda:{at}"] = _of_torch(torch, each)
    return found


def _of_torch(torch: Any, generator: Any) -> bytes:
    modes = importlib.import_module("torch.utils._python_dispatch")._disable_current_modes
    with torch._C.DisableTorchFunction(), modes():
        return bytes(generator.get_state().numpy())


def changed(before: States, after: States) -> list[str]:
    """The generators that have drawn numbers, or got a seed."""
    return [name for name, state in before.items() if after.get(name) != state]


@contextlib.contextmanager
def asked_of_memory(reading: Reading) -> Iterator[None]:
    """Inside, functions that give a seed, or what memory is, are noticed."""
    with contextlib.ExitStack() as undo:
        for words, what in ((_SEEDS, "the seed"), (_OF_MEMORY, "the memory")):
            for module, names in words.items():
                for name in names if module in sys.modules else ():
                    _notice(undo, reading, sys.modules[module], name, what)
        yield


def _notice(
    undo: contextlib.ExitStack, reading: Reading, module: Any, name: str, what: str
) -> None:
    own: Callable[..., Any] | None = getattr(module, name, None)
    if own is None:
        return

    @functools.wraps(own)
    def function(*args: Any, **named: Any) -> Any:
        reading.read_by(what, f"{module.__name__}.{name}")
        return own(*args, **named)

    undo.callback(setattr, module, name, own)
    setattr(module, name, function)
