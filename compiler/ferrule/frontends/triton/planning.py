"""From arguments to a launch: the choices of heuristics, the effects of hooks, the grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.strides import Read
from ferrule.frontends.surroundings import state
from ferrule.frontends.triton.arguments import Arguments, DescriptorArgument, PointerArgument
from ferrule.frontends.triton.autotuned.configs import Version
from ferrule.frontends.triton.autotuned.pruning import refuse_pruned
from ferrule.frontends.triton.fills import Fill
from ferrule.frontends.triton.grids import Grid, GridOfVersions, checked_grid
from ferrule.frontends.triton.installed import Kernel
from ferrule.frontends.triton.jobs import Job, also_options, checked_options
from ferrule.frontends.triton.traced.functions import Quotient, Traced, trace
from ferrule.frontends.triton.traced.numbers import Unseen
from ferrule.frontends.triton.traced.paths import MOST_VALUES, Path
from ferrule.frontends.triton.traced.powers import Smeared
from ferrule.frontends.triton.traced.refusals import CallRefused, Refusal
from ferrule.frontends.triton.traced.tensors import TracedDescriptor, TracedTensor
from ferrule.specs import format_condition
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """A launch before its kernel is compiled; `fills` are executed before it."""

    arguments: Arguments
    options: Mapping[str, Any]
    grid: Grid
    fills: tuple[Fill, ...]


MOST_KERNELS: Final = 24
"""The greatest number of kernels that the outcomes of a function need."""


def check_outcomes(name: str, plans: Sequence[Plan | Refusal]) -> None:
    """Raises CompileError if every call is refused, or if there are more than `MOST_KERNELS`
    kernels."""
    refused = [each for each in plans if isinstance(each, Refusal)]
    if len(refused) == len(plans):
        raise CompileError(
            Diagnostic(
                f"{refused[0].what} raises {refused[0].kind} in every call: {refused[0].message}"
            )
        )
    kernels: list[tuple[Any, Any]] = []
    for each in plans:
        if isinstance(each, Plan) and (each.arguments.constants, each.options) not in kernels:
            kernels.append((each.arguments.constants, each.options))
    if len(kernels) > MOST_KERNELS:
        raise CompileError(
            Diagnostic(
                f"{name}: a call's sizes choose among {len(kernels)} kernels",
                expected=f"at most {MOST_KERNELS}",
                hint='bound the sizes that choose, as in "*bf16[m, n<=65536]"',
            )
        )


@dataclass(frozen=True, slots=True)
class Planner:
    """Makes the plans of one kernel; `grid` has the form that Triton takes.

    `prune`: calls for which `early_config_prune` leaves out the configuration are refused.
    `strides` are those that functions of the arguments read on any path.
    """

    kernel: Kernel
    name: str
    job: Job
    grid: Any
    prune: bool = True
    strides: set[Read] = field(default_factory=set)

    def attempt(self, arguments: Arguments, version: Version, path: Path) -> Plan | Refusal:
        """As `plan`; the error of the calls on this path if a function raises one."""
        try:
            return self.plan(arguments, version, path)
        except CallRefused as error:
            return error.refusal
        except CompileError as error:
            told = path.condition
            if told is None:
                raise
            where = f"for calls with {format_condition(told, arguments.signature.known)}"
            notes = (*error.diagnostic.notes, where)
            raise CompileError(replace(error.diagnostic, notes=notes)) from error
        finally:
            self.strides.update(path.strides)

    def plan(self, arguments: Arguments, version: Version, path: Path) -> Plan:
        """The launch of a version, on one path through the traced functions.

        Raises CompileError for a function that cannot be traced, CallRefused for what one raises on
        this path.
        """
        filled = arguments.with_constants(version.constants)
        options = {**version.options, **self.job.options}
        filled, options = self._chosen(filled, options, path)
        seen = filled.traced(path)
        if self.prune and version.config is not None:
            refuse_pruned(self.kernel, version.config, seen, path)
        fills = tuple(
            Fill(each.tensor, each.fill)
            for each in filled.each
            if isinstance(each, PointerArgument | DescriptorArgument) and each.fill is not None
        )
        if version.hook is not None:
            self._hooked(version.hook, {**options, **seen}, path)
            filled, done = self._done(filled, seen)
            fills += done
        grid = self.grid.of(version.constants) if type(self.grid) is GridOfVersions else self.grid
        return Plan(filled, options, checked_grid(grid, filled, path, self.name), fills)

    def _hooked(self, hook: Any, seen: Mapping[str, Any], path: Path) -> None:
        """Runs a hook once; raises CompileError if it changes values outside itself, because no
        call would repeat that."""
        what, before = f"{self.name}: the pre_hook of its config", state(hook)
        trace(hook, seen, what, path=path)
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
            value = self._constant(trace(heuristics[name], visible, what, advice, path), what)
            if name in self.kernel.names:
                filled = filled.with_constants({name: value})
                chosen |= checked_options(self.kernel, also_options(self.kernel, {name: value}))
            else:
                chosen |= checked_options(self.kernel, {name: value})
        return filled, chosen

    def _constant(self, value: Any, what: str) -> Any:
        """The value of a heuristic, which the call decides if there are few."""
        found = value
        if isinstance(value, Unseen) and value.is_bool:
            found = bool(value)
        elif isinstance(value, Smeared):
            found = value.number()
        elif isinstance(value, Traced) and value.path is not None:
            known = value.path.value(value.dim)
            found = value if known is None else known
        if isinstance(found, Traced | Quotient | Unseen | TracedTensor):
            raise CompileError(
                Diagnostic(
                    f"{what} gives {found!r}, which only a call knows: a constant is needed",
                    expected=f"at most {MOST_VALUES} values: bound the sizes of which it is made, "
                    'as in "*bf16[m, n<=4096]"',
                    hint="what compares sizes, as an `if`, the call decides; or give it as a "
                    "constant, in a function for each value that is needed",
                )
            )
        return found

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
