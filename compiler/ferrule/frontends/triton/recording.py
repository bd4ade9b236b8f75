"""Launches of Triton kernels by another program: they are recorded instead of executed, then
compiled.

    record = Recorder()
    bound.compile_config(config)(x, y, _launcher=record)   # Helion
    softmax = record.launches[0].compile(target="sm_90a")

Helion and others generate a Python function around a kernel, which computes the grid and calls a
launcher with it.  `Recorder` is such a launcher, but it launches nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ferrule.compiler.errors import CompileError
from ferrule.frontends.examples import seen, tensor_like
from ferrule.frontends.triton.arguments import Fixed
from ferrule.frontends.triton.compiling import compile
from ferrule.frontends.triton.installed import kernel_of
from ferrule.frontends.triton.tuples import nest
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.runtime import Function


@dataclass(frozen=True, slots=True)
class RecordedLaunch:
    """A launch, `kernel[grid](*arguments, **keywords)`; some keywords are Triton's options."""

    kernel: Any
    grid: Any
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]

    def compile(
        self,
        *,
        target: str | Sequence[str] | None = None,
        signature: Mapping[str, Any] | None = None,
        grid: Any = None,
        **how: Any,
    ) -> Function:
        """The function that executes this launch: it takes tensors of the recorded sizes.

        Numbers keep their recorded values, too, because the grid was computed for them; `signature`
        gives examples for some parameters instead, as for `compile`, and `grid` gives a grid that
        depends on them.  Raises the errors of `compile`.
        """
        kernel = kernel_of(self.kernel)
        if len(self.arguments) > len(kernel.names):
            raise CompileError(f"{kernel.name}: the launch had more arguments than parameters")
        given = dict(zip(kernel.names, self.arguments, strict=False))
        options = {key: value for key, value in self.keywords.items() if key not in kernel.names}
        given |= {key: value for key, value in self.keywords.items() if key in kernel.names}
        constexprs = kernel.constexprs
        examples = {
            name: value if name in constexprs else _frozen(name, value)
            for name, value in given.items()
        }
        chosen = self.grid if grid is None else grid
        known = {**examples, **(signature or {})}
        return compile(
            self.kernel, signature=known, grid=chosen, target=target, **{**options, **how}
        )


@dataclass(frozen=True, slots=True)
class Recorder:
    """A replacement for a launcher, `launcher(kernel, grid, *args, **keywords)`."""

    launches: list[RecordedLaunch] = field(default_factory=list)

    def __call__(self, kernel: Any, grid: Any, *arguments: Any, **keywords: Any) -> None:
        """Records a launch."""
        self.launches.append(RecordedLaunch(kernel, grid, arguments, keywords))


def _frozen(name: str, value: Any) -> Any:
    """An example that accepts only this value."""
    if isinstance(value, int | float):
        return Fixed(value)
    if isinstance(value, tuple | list):
        return nest(value, lambda each: _frozen(name, each))
    if not hasattr(type(value), "__dlpack__"):
        return value
    found = seen(name, value)
    return tensor_like(name, found, constant=len(found.shape))
