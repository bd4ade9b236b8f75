"""Where the time of a compilation goes, by stage.

`recorded()` puts a clock around the functions that make a stage, in the compiler that runs: nothing
is built a second time here. A function is replaced wherever a module of ferrule refers to it, so
the modules must have been imported, by a compilation before. Time counts for the innermost stage.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

OTHER: Final = "other"

STAGES: Final = (
    ("kernel IR", "ferrule.language.lowering.program:lower_program"),
    ("kernel IR", "ferrule.language.ir.rules.verifier:verify"),
    ("kernel IR", "ferrule.language.ir.printer:print_program"),
    ("kernel IR", "ferrule.language.mathlib:expand_maths"),
    ("body as LLVM text", "ferrule.language.codegen.cpu.target:lower_cpu"),
    ("body as LLVM text", "ferrule.language.codegen.cuda.target:lower_cuda"),
    ("kernels to PTX", "ferrule.language.codegen.cuda.kernels:lower_device"),
    ("wrapper as LLVM text", "ferrule.compiler.wrapper.builder:wrapper_parts"),
    ("wrapper as LLVM text", "ferrule.compiler.wrapper.builder:WrapperParts.text"),
    ("LLVM: parse, verify, link", "ferrule.compiler.assemble:assemble"),
    ("LLVM: optimise", "llvmlite.binding:ModulePassManager.run"),
    ("LLVM: emit", "llvmlite.binding:TargetMachine.emit_object"),
    ("load", "ferrule.runtime.linking.engine:Engine.load"),
    ("make the function", "ferrule.runtime.calls.function:make_function"),
)
"""Each stage with the functions that make it, as `module:name`."""


@dataclass(slots=True)
class Clock:
    """Seconds by stage."""

    seconds: dict[str, float] = field(default_factory=dict)
    _running: list[str] = field(default_factory=lambda: [OTHER])
    _since: float = field(default_factory=time.perf_counter)

    def switch(self) -> None:
        """Credit the stage that runs with the time until now."""
        now = time.perf_counter()
        stage = self._running[-1]
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._since
        self._since = now

    def around(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, timed as a part of the stage."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            self.switch()
            self._running.append(stage)
            try:
                return function(*args, **kwargs)
            finally:
                self.switch()
                self._running.pop()

        return timed


@contextmanager
def recorded() -> Iterator[Clock]:
    """Time what is compiled inside; the clock is complete when the block ends."""
    with ExitStack() as undo:
        clock = Clock()
        for stage, place in STAGES:
            _replace(undo, place, stage, clock)
        clock.switch()
        clock.seconds.clear()
        yield clock
        clock.switch()


def _replace(undo: ExitStack, place: str, stage: str, clock: Clock) -> None:
    module_name, _, path = place.partition(":")
    owner: Any = importlib.import_module(module_name)
    *owners, name = path.split(".")
    for part in owners:
        owner = getattr(owner, part)
    original = getattr(owner, name)
    timed = clock.around(stage, original)
    if owners:
        # A class method comes bound, and stays so.
        bound = hasattr(original, "__self__")
        _set(undo, owner, name, staticmethod(timed) if bound else timed)
        return
    for user in _modules():
        if getattr(user, name, None) is original:
            _set(undo, user, name, timed)


def _modules() -> list[Any]:
    return [m for name, m in list(sys.modules.items()) if name.partition(".")[0] == "ferrule"]


def _set(undo: ExitStack, owner: Any, name: str, value: Any) -> None:
    own = vars(owner).get(name)
    if own is None:
        undo.callback(delattr, owner, name)
    else:
        undo.callback(setattr, owner, name, own)
    setattr(owner, name, value)
