"""`compile`: a Triton kernel becomes a TVM-FFI function."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ferrule import compiler
from ferrule.compiler import conventions
from ferrule.compiler.artefacts import Location
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.options import Options
from ferrule.frontends.triton.arguments import Arguments
from ferrule.frontends.triton.configs import Version, condition_of, versions_of
from ferrule.frontends.triton.examples import arguments_of
from ferrule.frontends.triton.grids import trace, trace_grid
from ferrule.frontends.triton.installed import Kernel, kernel_of
from ferrule.frontends.triton.jobs import Job, as_constants, job_of
from ferrule.frontends.triton.launching import Candidate, convention
from ferrule.frontends.triton.offline import architectures, compile_offline
from ferrule.frontends.triton.specialise import Specialise, specialisations
from ferrule.frontends.triton.tuples import flattened
from ferrule.runtime.devices import cuda_devices
from ferrule.specs.expr import is_name

if TYPE_CHECKING:
    from ferrule.compiler.conventions.base import CallingConvention
    from ferrule.runtime import Function


def compile(
    kernel: Any,
    *examples: Any,
    signature: Mapping[str, Any] | None = None,
    constexprs: Mapping[str, Any] | None = None,
    grid: Any,
    target: str | Sequence[str] | None = None,
    name: str | None = None,
    specialize: Specialise = "check",
    config: Any = None,
    options: str | Options | None = None,
    doc: str | None = None,
    **more: Any,
) -> Function:
    """The function that launches a Triton kernel, or one of Gluon, compiled without a GPU.

        add = compile(add_kernel, signature={"x": "*fp32[n]:16", "y": "*fp32[n]:16", "out":
                      like("x")}, constexprs={"BLOCK": 1024}, target="sm_90a",
                      grid=lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),))

    Every parameter of the kernel has an example: by position, as in a launch, by name in
    `signature`, `constexprs` or as a keyword.  An example is a tensor, a fake one or a spec; a
    number, or its dtype; a text in Triton's terms, see `types`; a size over those of the tensors,
    as an expression, as "x.shape[0]" and "x.strides[1]", or as a function of the signature; `like`
    and `empty` for tensors that the function allocates and returns; `descriptor` for one that
    Triton's `TensorDescriptor` is made of; None.  A parameter named as a size gets that.  The
    function takes the tensors and numbers among them, in the kernel's order.

    `grid` is what Triton takes: one to three sizes, or a function of the arguments, see `grids`.
    `target` is an architecture or several, the first GPU's by default.  `specialize` says what is
    done about what Triton assumes of a call's arguments: "check" refuses others, "dispatch" also
    compiles the kernel without assumptions and chooses, a list says what each of several versions
    assumes.  `config` is the configuration of an autotuned kernel: a `triton.Config`, the number of
    one of the kernel's, or a dict of these by key, such as `tune` gives.  `more` are arguments of
    the kernel and Triton's options (num_warps, num_stages, num_ctas, maxnreg, launch_pdl,
    launch_cooperative_grid).  `options` are those of `build`.

    Raises ImportError without Triton, CompileError for what cannot be compiled.
    """
    found = kernel_of(kernel)
    versions = versions_of(found, config)
    job = job_of(found, examples, signature, constexprs, more, versions)
    found, given = flattened(found, job.given)
    job = replace(job, given=given)
    named = name or found.name
    archs = _archs(target)
    return _Compilation(found, job, named, specialize, archs, grid, versions).function(options, doc)


def _archs(target: str | Sequence[str] | None) -> tuple[int, ...]:
    if target is not None:
        return architectures(target)
    named = os.environ.get("FERRULE_GPU_ARCH")
    if named:
        return architectures(named)
    gpus = cuda_devices()
    if not gpus:
        raise CompileError(
            Diagnostic(
                "a Triton kernel is compiled for an architecture: this machine has no GPU to take "
                "it from",
                expected='target="sm_90a", or several: target=["sm_80", "sm_90a"]',
            )
        )
    return (gpus[0].major * 10 + gpus[0].minor,)


@dataclass(frozen=True, slots=True)
class _Compilation:
    kernel: Kernel
    job: Job
    name: str
    specialize: Specialise
    archs: tuple[int, ...]
    grid: Any
    versions: tuple[Version, ...]

    def function(self, options: str | Options | None, doc: str | None) -> Function:
        if not is_name(self.name):
            raise CompileError(f"a function's name is an identifier, but got {self.name!r}")
        arguments = self._arguments()
        return compiler.build(
            arguments.signature,
            self._convention(arguments),
            results=arguments.results,
            options=options,
            doc=self._documented(doc),
            location=_location(self.kernel),
        )

    def _arguments(self) -> Arguments:
        """The arguments of all versions: what one of them is in has no value yet."""
        names = {*(self.kernel.heuristics or {})}.union(*(each.constants for each in self.versions))
        open_ones = as_constants(dict.fromkeys(names - self.job.given.keys()))
        return arguments_of(self.kernel, self.name, {**self.job.given, **open_ones})

    def _convention(self, arguments: Arguments) -> CallingConvention:
        steps = []
        for version in self.versions:
            step = self._launch(self._filled(arguments, version), version)
            if version.key is None:
                steps.append(step)
                break
            when = condition_of(self.kernel, arguments, version.key)
            steps.append(conventions.Sequence([step], when=when))
        return steps[0] if steps[0].when is None else conventions.FirstOf(steps)

    def _filled(self, arguments: Arguments, version: Version) -> Arguments:
        """The arguments with the constants of a version, and what heuristics make of them."""
        filled = arguments.with_constants(version.constants)
        heuristics: Mapping[str, Callable[..., Any]] = self.kernel.heuristics or {}
        unknown = [name for name in heuristics if name not in self.job.given]
        for name in unknown:
            seen = filled.traced()
            visible = {key: value for key, value in seen.items() if key not in unknown}
            value = trace(heuristics[name], visible, f"{self.name}: the heuristic of {name!r}")
            filled = filled.with_constants({name: value})
            unknown = [each for each in unknown if each != name]
        return filled

    def _launch(self, arguments: Arguments, version: Version) -> CallingConvention:
        kinds, whole = specialisations(self.kernel, arguments, self.specialize)
        grid = trace_grid(self.grid, arguments.traced(), self.name)
        options = {**version.options, **self.job.options}
        candidates = []
        for each in kinds:
            compiled = compile_offline(self.kernel, each, options, self.archs)
            candidates.append(Candidate(each, compiled, grid))
            if not each.conditions:
                break
        return convention(self.name, candidates, whole=whole)

    def _documented(self, doc: str | None) -> str | None:
        """The kernel's documentation, and its configurations: kept in whatever is exported."""
        text = doc if doc is not None else self.kernel.function.__doc__
        lines = [] if text is None else [text]
        for version in self.versions:
            if version.text:
                key = zip(self.kernel.key, version.key or (), strict=False)
                where = ", ".join(f"{name} = {value}" for name, value in key)
                lines.append(f"Triton config{' for ' + where if where else ''}: {version.text}")
        return "\n".join(lines) or None


def _location(kernel: Kernel) -> Location | None:
    code = getattr(kernel.function.fn, "__code__", None)
    if code is None:
        return None
    return Location(code.co_filename, kernel.name, code.co_firstlineno)
