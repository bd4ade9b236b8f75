"""`compile`: a Triton kernel becomes a TVM-FFI function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from ferrule.compiler import conventions
from ferrule.compiler.building import build_later
from ferrule.compiler.cache.keys import Uncacheable
from ferrule.compiler.cuda.archs import NO_GPU, choose
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.options import Options, default_environment
from ferrule.frontends.captured import compiled_in
from ferrule.frontends.exactstrides import ExactStrides
from ferrule.frontends.given import location_of, requiring
from ferrule.frontends.reading import remarks_on
from ferrule.frontends.triton.arguments import (
    Arguments,
    DescriptorArgument,
    Fixed,
    PointerArgument,
)
from ferrule.frontends.triton.autotuned.choosing import AtMost, Choice
from ferrule.frontends.triton.autotuned.configs import Version, one_of, versions_of
from ferrule.frontends.triton.autotuned.rows import row_requirements
from ferrule.frontends.triton.computed import with_functions
from ferrule.frontends.triton.counting import Counts, check_counts
from ferrule.frontends.triton.examples import arguments_of, tied_constants
from ferrule.frontends.triton.fills import filling
from ferrule.frontends.triton.installed import Kernel, kernel_of
from ferrule.frontends.triton.jobs import Job, as_constants, job_of
from ferrule.frontends.triton.launching import Candidate, convention
from ferrule.frontends.triton.levels import Specialise
from ferrule.frontends.triton.offline import Wanted, architectures, keys_of
from ferrule.frontends.triton.planning import Plan, Planner, check_outcomes
from ferrule.frontends.triton.refusing import Refusing
from ferrule.frontends.triton.specialise import specialisations
from ferrule.frontends.triton.traced.knowledge import sizes_in
from ferrule.frontends.triton.traced.paths import outcomes
from ferrule.frontends.triton.traced.refusals import Refusal
from ferrule.frontends.triton.tuples import flattened
from ferrule.frontends.triton.variants import Codes, Group, Planned, joined, variants_note
from ferrule.runtime.devices import cuda_devices
from ferrule.specs import condition_symbols
from ferrule.specs.deferred import dataclass

_FILL: Final = "frontend.zeros(…) as its example fills it"

if TYPE_CHECKING:
    from ferrule.compiler.conventions.protocol import CallingConvention
    from ferrule.runtime import Function
    from ferrule.specs import Condition, Requirement, Sym


def compile(
    kernel: Any,
    *examples: Any,
    signature: Mapping[str, Any] | None = None,
    constexprs: Mapping[str, Any] | None = None,
    grid: Any,
    target: str | Sequence[str] | None = None,
    specialize: Specialise = "check",
    config: Any = None,
    choose: Choice | None = None,
    prune: bool = True,
    counts: Counts | None = None,
    name: str | None = None,
    doc: str | None = None,
    requires: Sequence[Condition | Requirement] = (),
    options: str | Options | None = None,
    **more: Any,
) -> Function:
    """The function that launches a Triton kernel, or one of Gluon, compiled without a GPU.

        add = compile(add_kernel, signature={"x": "*fp32[n]:16", "y": "*fp32[n]:16", "out":
                      like("x")}, constexprs={"BLOCK": 1024}, target="sm_90a",
                      grid=lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),))

    Every parameter of the kernel has an example: by position, as in a launch, by name in
    `signature`, `constexprs` or as a keyword.  An example is a tensor, a fake one or a spec; the
    dtype of a number, or a number (by position, an example of the numbers that callers pass; by
    name, the number in every call); a text in Triton's terms, see `types`; a size over those of the
    tensors, as an expression, as "x.shape[0]" and "x.strides[1]", or as a function of the
    signature; `like`, `empty` and `zeros` for tensors that the function allocates and returns;
    `descriptor`, or one of Triton's; a tuple of these, each element of which is a parameter; None.
    A parameter with the name of a size gets that size.  The function takes the tensors and numbers
    among these, in the kernel's order.

    `grid` has the form that Triton takes: one to three sizes, or a function of the arguments, see
    `grids`.  `target` is an architecture or several, the first GPU's by default.  `specialize`
    selects the treatment of Triton's assumptions about a call's arguments: "check" refuses calls
    that violate them, "dispatch" also compiles variants of the kernel with fewer assumptions, of
    which each call takes the first that fits it, a list gives the assumptions of each variant;
    `explain` of the function says which one a call takes, and `counts` counts their calls.
    `config` is the configuration of an autotuned kernel: a `triton.Config`, the number of one of
    the kernel's, or a dict of these by key, such as `tune` gives; `choose` are configurations by
    buckets of a size, or of a library's file: `by_size`, `vllm_configs`, `fla_configs`.  Calls for
    which the autotuner's `early_config_prune` leaves out their configuration are refused, unless
    `prune` is False.  `more` are arguments of the kernel and Triton's options (num_warps,
    num_stages, num_ctas, maxnreg, launch_pdl, launch_cooperative_grid).  `requires` as for
    `fe.compile`, `options` are those of `build`.

    Raises ImportError if Triton is not installed, CompileError for a kernel that cannot be
    compiled.
    """
    check_counts(counts, specialize)
    if not isinstance(prune, bool):
        raise TypeError(f"prune must be True or False, but got {prune!r}")
    chosen = one_of(config, choose)
    parts = prepared(kernel, examples, signature, constexprs, chosen, more)
    compilation = Compilation(*parts, name, specialize, archs_of(target), grid, counts, prune)
    return compilation.function(doc, requires, options)


def arguments_for(kernel: Any, how: Mapping[str, Any]) -> Arguments:
    """The arguments with which a kernel is compiled, with its first configuration if none is named;
    `how` are the keyword arguments of `compile`."""
    beside = ("signature", "constexprs", "grid", "target", "specialize", "counts", "name")
    more = {
        k: v for k, v in how.items() if k not in (*beside, "doc", "prune", "requires", "options")
    }
    given = how.get("signature"), how.get("constexprs")
    return Compilation(*prepared(kernel, (), *given, 0, more)).arguments()


def prepared(
    kernel: Any,
    examples: Sequence[Any],
    signature: Mapping[str, Any] | None,
    constexprs: Mapping[str, Any] | None,
    config: Any,
    more: Mapping[str, Any],
) -> tuple[Kernel, Job, tuple[Version, ...]]:
    """The kernel with a parameter for each element of tuples, its examples, and its versions."""
    found = kernel_of(kernel)
    versions = versions_of(found, config)
    found, signature, constexprs, more = with_functions(
        found, versions, signature, constexprs, more
    )
    job = job_of(found, examples, signature, constexprs, more, versions)
    found, given = flattened(found, job.given)
    return found, replace(job, given=given), versions


def archs_of(target: str | Sequence[str] | None) -> tuple[int, ...]:
    """The architectures of a target, by default the first GPU's.  CompileError without one."""
    lacking = Diagnostic(
        f"a Triton kernel is compiled for an architecture: {NO_GPU}",
        expected='target="sm_90a", or several: target=["sm_80", "sm_90a"]',
    )
    return choose("target", target, _read, default_environment(), cuda_devices, lacking)


def _read(_: str, given: str | Sequence[str]) -> tuple[int, ...]:
    return architectures(given)


@dataclass(frozen=True, slots=True)
class Compilation:
    """A kernel with its examples, on the way to launches."""

    kernel: Kernel
    job: Job
    versions: tuple[Version, ...]
    given_name: str | None = None
    specialize: Specialise = "check"
    archs: tuple[int, ...] = ()
    grid: Any = None
    counts: Counts | None = None
    prune: bool = True

    @property
    def name(self) -> str:
        return self.kernel.name if self.given_name is None else self.given_name

    def function(
        self,
        doc: str | None,
        requires: Sequence[Condition | Requirement],
        options: str | Options | None,
    ) -> Function:
        if not isinstance(doc, str | None):
            raise TypeError(f"{self.name}: doc must be a str, but got {doc!r}")
        arguments = self.arguments()
        planned = self._planned(arguments)
        known = {
            "signature": requiring(arguments.signature, [*requires, *self.rows(arguments)]),
            "results": arguments.results,
            "doc": self._documented(doc),
            "location": location_of(self.kernel.function.fn),
            "assumes": compiled_in(self.kernel.function.fn),
        }
        notes = {**self._notes(), **self._remarks(arguments)}

        def make() -> dict[str, Any]:
            step, groups = self._convention(planned)
            told = variants_note(groups, arguments.signature.known)
            return {**known, "convention": step, "notes": {**notes, **told}}

        def told() -> list[object]:
            if self.counts is not None:
                raise Uncacheable("it counts in this process")
            each = [one.told() for several in planned for one in several]
            return [self.name, self.archs, known, notes, each, *self._keys(planned)]

        return build_later(self.name, told, make, options)

    def rows(self, arguments: Arguments) -> list[Requirement]:
        """The rows of a call fit the block of its configuration."""
        return row_requirements(self.kernel, self.versions, arguments)

    def step(self, arguments: Arguments) -> CallingConvention:
        """The launches for these arguments, as a step of another function."""
        planned = self._planned(arguments)
        return self._convention(planned)[0]

    def arguments(self) -> Arguments:
        """The arguments of all versions: the constants that a version sets have no value yet."""
        names = {*self.kernel.heuristics}.union(*(each.constants for each in self.versions))
        unknown = (names & {*self.kernel.names}) - self.job.given.keys()
        open_ones = as_constants(dict.fromkeys(unknown))
        sizes = [each.fit.size for each in self.versions if isinstance(each.fit, AtMost)]
        return arguments_of(self.kernel, self.name, {**self.job.given, **open_ones}, sizes)

    def _convention(
        self, planned: Sequence[Sequence[Planned]]
    ) -> tuple[CallingConvention, list[Group]]:
        """The launches of all versions, and the variants among them for the function's notes."""
        codes = Codes.compiled(self.kernel, self._wanted(planned), self.archs)
        chosen = [[(one, one.candidates(codes)) for one in several] for several in planned]
        groups = [
            Group(joined(one.version, one.when), found) for each in chosen for one, found in each
        ]
        steps = []
        for several in chosen:
            step = self._version([self._launch(one, found) for one, found in several])
            when = several[0][0].version
            steps.append(step if when is None else conventions.Sequence([step], when=when))
        step = steps[0] if steps[0].when is None else conventions.FirstOf(steps)
        read = frozenset().union(*(one.strides for several in planned for one in several))
        return conventions.Sequence([ExactStrides.of(read), step]) if read else step, groups

    def _wanted(self, planned: Sequence[Sequence[Planned]]) -> list[Wanted]:
        return [each for several in planned for one in several for each in one.wanted()]

    def _keys(self, planned: Sequence[Sequence[Planned]]) -> list[str]:
        """The keys of all kernels.  Raises Uncacheable if one has none."""
        found = keys_of(self.kernel, self._wanted(planned), self.archs)
        keys = [key for key in found if key is not None]
        if len(keys) < len(found):
            raise Uncacheable("Triton is told to do something while it compiles")
        return keys

    def _planned(self, arguments: Arguments) -> list[list[Planned]]:
        """The launches of each version, up to the first that is for every call.

        Raises CompileError if there is a version for no call.
        """
        found = []
        for version in self.versions:
            when = version.condition(self.kernel, arguments)
            if when is not False:
                found.append(self._of_version(arguments, version, None if when is True else when))
            if when is True:
                break
        if not found:
            raise CompileError(
                Diagnostic(
                    f"{self.name}: no config is for these arguments",
                    expected="; or ".join(str(each.fit) for each in self.versions),
                )
            )
        return found

    def _of_version(
        self, arguments: Arguments, version: Version, of_version: Condition | None
    ) -> list[Planned]:
        """The launches of a version, one for each outcome of the traced functions."""
        planner = Planner(self.kernel, self.name, self.job, self.grid, self.prune)
        sizes = sizes_in(arguments.signature)
        run = partial(planner.attempt, arguments, version)
        found = list(outcomes(run, self.name, sizes))
        check_outcomes(self.name, [plan for _, plan in found])
        asked = [
            symbol for when, _ in found if when is not None for symbol in condition_symbols(when)
        ]
        shown = tuple(dict.fromkeys(asked))
        planned = (self._planned_as(plan, when, of_version, shown) for when, plan in found)
        return [replace(each, strides=frozenset(planner.strides)) for each in planned]

    def _planned_as(
        self,
        plan: Plan | Refusal,
        when: Condition | None,
        of_version: Condition | None,
        shown: tuple[Sym, ...],
    ) -> Planned:
        if isinstance(plan, Refusal):
            return Planned(replace(plan, symbols=shown), (), False, when, of_version)
        kinds, whole = specialisations(self.kernel, plan.arguments, self.specialize)
        return Planned(plan, kinds, whole, when, of_version)

    def _version(self, steps: Sequence[CallingConvention]) -> CallingConvention:
        return steps[0] if len(steps) == 1 else conventions.FirstOf(steps)

    def _launch(self, one: Planned, candidates: Sequence[Candidate]) -> CallingConvention:
        if isinstance(one.plan, Refusal):
            return Refusing(one.plan, one.when)
        step = convention(self.name, candidates, whole=one.whole, counts=self.counts)
        fills = [filling(self.name, fill, self.archs) for fill in one.plan.fills]
        if not fills and one.when is None:
            return step
        return conventions.Sequence([*fills, step], when=one.when)

    def _notes(self) -> dict[str, Any]:
        """As data: the configurations in the order in which they are tried, and the fixed
        numbers."""
        known = {"configs": self._configs(), "fixed": self._fixed()}
        found = {key: each for key, each in known.items() if each}
        return {"triton": found} if found else {}

    def _remarks(self, arguments: Arguments) -> dict[str, list[str]]:
        """Remarks about tensors that the function allocates and does not fill."""
        kinds = PointerArgument | DescriptorArgument
        made = [a.name for a in arguments.each if isinstance(a, kinds) and a.made]
        empty = [a.name for a in arguments.each if isinstance(a, kinds) and a.fill is None]
        open_ones = [name for name in made if name in empty]
        return remarks_on(self.name, self.kernel.function.fn, open_ones, _FILL)

    def _configs(self) -> list[dict[str, Any]]:
        return [self._config(version) for version in self.versions if version.text]

    def _config(self, version: Version) -> dict[str, Any]:
        key = dict(zip(self.kernel.key, version.key or (), strict=False))
        told = {"key": key, "config": version.text}
        return told if version.fit is None else {**told, "when": str(version.fit)}

    def _fixed(self) -> dict[str, int | float | bool | str]:
        """The numbers that are the same in every call, and constants that may be an example's
        sizes; infinities and NaN are texts, because JSON lacks them."""
        given = self.job.given.items()
        numbers = {name: each.value for name, each in given if isinstance(each, Fixed)}
        numbers |= tied_constants(self.kernel, self.job.given)
        return {name: each if isfinite(each) else str(each) for name, each in numbers.items()}

    def _documented(self, doc: str | None) -> str | None:
        """The kernel's docstring, the fixed numbers, and the configurations; it is kept in each
        export."""
        text = doc if doc is not None else self.kernel.function.__doc__
        lines = [] if text is None else [text]
        fixed = ", ".join(f"{name} = {value}" for name, value in self._fixed().items())
        if fixed:
            lines.append(f"In every call: {fixed}")
        for each in self._configs():
            key = ", ".join(f"{name} = {value}" for name, value in each["key"].items())
            where = each.get("when", key)
            lines.append(f"Triton config{' for ' + where if where else ''}: {each['config']}")
        return "\n".join(lines) or None
