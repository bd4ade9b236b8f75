"""From arguments to a launch: the choices of heuristics, the effects of hooks, the grid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.surroundings import state
from ferrule.frontends.triton.arguments import Arguments, DescriptorArgument, PointerArgument
from ferrule.frontends.triton.autotuned.configs import Version
from ferrule.frontends.triton.fills import Fill
from ferrule.frontends.triton.grids import Grid, checked_grid
from ferrule.frontends.triton.installed import Kernel
from ferrule.frontends.triton.jobs import Job, checked_options
from ferrule.frontends.triton.traced.functions import Quotient, Traced, Unseen, trace
from ferrule.frontends.triton.traced.paths import Path
from ferrule.frontends.triton.traced.tensors import TracedDescriptor, TracedTensor
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """A launch before its kernel is compiled; `fills` are executed before it."""

    arguments: Arguments
    options: Mapping[str, Any]
    grid: Grid
    fills: tuple[Fill, ...]


@dataclass(frozen=True, slots=True)
class Planner:
    """Makes the plans of one kernel; `grid` has the form that Triton takes."""

    kernel: Kernel
    name: str
    job: Job
    grid: Any

    def plan(self, arguments: Arguments, version: Version, path: Path) -> Plan:
        """The launch of a version, on one path through the traced functions.

        Raises CompileError for a function that cannot be traced.
        """
        filled = arguments.with_constants(version.constants)
        options = {**version.options, **self.job.options}
        filled, options = self._chosen(filled, options, path)
        seen = filled.traced(path)
        fills = tuple(
            Fill(each.tensor, each.fill)
            for each in filled.each
            if isinstance(each, PointerArgument | DescriptorArgument) and each.fill is not None
        )
        if version.hook is not None:
            self._hooked(version.hook, {**options, **seen})
            filled, done = self._done(filled, seen)
            fills += done
        return Plan(filled, options, checked_grid(self.grid, filled, path, self.name), fills)

    def _hooked(self, hook: Any, seen: Mapping[str, Any]) -> None:
        """Runs a hook once; raises CompileError if it changes values outside itself, because no
        call would repeat that."""
        what, before = f"{self.name}: the pre_hook of its config", state(hook)
        trace(hook, seen, what)
        if state(hook) != before:
            raise CompileError(
                Diagnostic(
                    f"{what} changes Python objects around it, which no call would do",
                    expected="a hook that fills tensors or sets the block_shape of descriptors",
                    hint="do it in a function around this one",
                )
            )

    def _chosen(
        self, arguments: Arguments, options: Mapping[str, Any], path: Path
    ) -> tuple[Arguments, dict[str, Any]]:
        """The arguments and options with the choices of the heuristics, one after the other:
        constants, and options of Triton."""
        filled, chosen = arguments, dict(options)
        known = {*self.job.given, *options}
        heuristics = self.kernel.heuristics
        open_ones = [name for name in heuristics if name not in known]
        for number, name in enumerate(open_ones):
            seen = {**chosen, **filled.traced(path)}
            visible = {key: seen[key] for key in seen if key not in open_ones[number:]}
            what = f"{self.name}: the heuristic of {name!r}"
            advice = f"{name} itself can be given, in a function for each value that is needed"
            value = trace(heuristics[name], visible, what, advice)
            if isinstance(value, Traced | Quotient | Unseen | TracedTensor):
                raise CompileError(
                    Diagnostic(
                        f"{what} gives {value!r}, which only a call knows: a constant is needed",
                        hint=f"what compares sizes, as an `if`, the call decides; {advice}",
                    )
                )
            if name in self.kernel.names:
                filled = filled.with_constants({name: value})
            else:
                chosen |= checked_options(self.kernel, {name: value})
        return filled, chosen

    def _done(
        self, arguments: Arguments, seen: Mapping[str, Any]
    ) -> tuple[Arguments, tuple[Fill, ...]]:
        """The effects of a hook: blocks of descriptors, and tensors that it filled."""
        blocks = {
            name: value.block_shape
            for name, value in seen.items()
            if isinstance(value, TracedDescriptor)
        }
        fills = tuple(
            Fill(each.tensor, value)
            for each in seen.values()
            if isinstance(each, TracedTensor)
            for value in each.filled[-1:]
        )
        return arguments.with_blocks(blocks), fills
