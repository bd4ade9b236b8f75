"""`compile`: a Triton kernel becomes a TVM-FFI function."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ferrule import compiler
from ferrule.compiler.artefacts import Location
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.options import Options
from ferrule.frontends.triton.arguments import Arguments
from ferrule.frontends.triton.configs import chosen_config
from ferrule.frontends.triton.examples import arguments_of
from ferrule.frontends.triton.grids import trace, trace_grid
from ferrule.frontends.triton.installed import Kernel, kernel_of
from ferrule.frontends.triton.launching import Candidate, convention
from ferrule.frontends.triton.offline import architectures, compile_offline
from ferrule.frontends.triton.specialise import Specialise, specialisations
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
    assumes.  `config` is the one to use of an autotuned kernel, see `configs`.  `more` are
    arguments of the kernel and Triton's options (num_warps, num_stages, num_ctas, maxnreg,
    launch_pdl, launch_cooperative_grid).

    Raises ImportError without Triton, CompileError for what cannot be compiled.
    """
    found = kernel_of(kernel)
    job = _job(found, examples, signature, constexprs, more, config)
    return _Compilation(found, job, name or found.name, specialize, _archs(target), grid).function(
        options, doc
    )


@dataclass(frozen=True, slots=True)
class Job:
    """What was said of a kernel: its arguments by name, and Triton's options."""

    given: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)


def _job(
    kernel: Kernel,
    examples: Sequence[Any],
    signature: Mapping[str, Any] | None,
    constexprs: Mapping[str, Any] | None,
    more: Mapping[str, Any],
    config: Any,
) -> Job:
    if len(examples) > len(kernel.parameters):
        raise CompileError(
            f"{kernel.name} has {len(kernel.parameters)} parameters, but got {len(examples)} "
            "examples"
        )
    given: dict[str, Any] = {}
    options = {key: value for key, value in more.items() if key not in kernel.names}
    named = {key: value for key, value in more.items() if key in kernel.names}
    chosen, chosen_options = chosen_config(kernel, config)
    sources = (
        ("by position", dict(zip(kernel.names, examples, strict=False))),
        ("in `signature`", signature or {}),
        ("in `constexprs`", _as_constants(constexprs or {})),
        ("as a keyword", named),
        ("by the config", _as_constants(chosen)),
    )
    for where, values in sources:
        _merge(kernel, given, values, where)
    return Job(given, {**chosen_options, **_checked_options(kernel, options)})


def _merge(kernel: Kernel, given: dict[str, Any], values: Mapping[str, Any], where: str) -> None:
    for key, value in values.items():
        if key not in kernel.names:
            raise CompileError(
                Diagnostic(
                    f"{kernel.name} has no parameter {key!r}, which is given {where}",
                    expected=", ".join(kernel.names),
                )
            )
        if key in given:
            raise CompileError(f"{kernel.name}: the parameter {key!r} is given twice, once {where}")
        given[key] = value


def _as_constants(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values that are compiled in, whether or not the kernel marks them so."""
    from triton.language import constexpr

    return {
        key: value if isinstance(value, constexpr) else constexpr(value)
        for key, value in values.items()
    }


def _checked_options(kernel: Kernel, options: Mapping[str, Any]) -> Mapping[str, Any]:
    from triton.backends.nvidia.compiler import CUDAOptions

    known = CUDAOptions.__dataclass_fields__
    for key in options:
        if key not in known:
            raise CompileError(
                Diagnostic(
                    f"{key!r} is neither a parameter of {kernel.name} nor an option of Triton",
                    expected=f"{', '.join(kernel.names)}; or {', '.join(sorted(known))}",
                )
            )
    return options


def _archs(target: str | Sequence[str] | None) -> tuple[int, ...]:
    if target is not None:
        return architectures(target)
    named = os.environ.get("FERRULE_GPU_ARCH")
    if named:
        return architectures(named)
    from ferrule.runtime.gpus import compute_capabilities

    gpus = cuda_devices()
    if not gpus:
        raise CompileError(
            Diagnostic(
                "a Triton kernel is compiled for an architecture: this machine has no GPU to take "
                "it from",
                expected='target="sm_90a", or several: target=["sm_80", "sm_90a"]',
            )
        )
    major, minor = gpus[0]
    return (major * 10 + minor,)


@dataclass(frozen=True, slots=True)
class _Compilation:
    kernel: Kernel
    job: Job
    name: str
    specialize: Specialise
    archs: tuple[int, ...]
    grid: Any

    def function(self, options: str | Options | None, doc: str | None) -> Function:
        arguments = self._arguments()
        return compiler.build(
            arguments.signature,
            self._convention(arguments),
            results=arguments.results,
            options=options,
            doc=doc if doc is not None else self.kernel.function.__doc__,
            location=_location(self.kernel),
        )

    def _arguments(self) -> Arguments:
        if not is_name(self.name):
            raise CompileError(f"a function's name is an identifier, but got {self.name!r}")
        given = dict(self.job.given)
        heuristics: Mapping[str, Callable[..., Any]] = self.kernel.heuristics or {}
        missing = {name: rule for name, rule in heuristics.items() if name not in given}
        if missing:
            unknown = dict.fromkeys(missing)
            known = arguments_of(self.kernel, self.name, {**given, **unknown}).traced()
            for name, rule in missing.items():
                visible = {key: value for key, value in known.items() if key not in missing}
                what = f"{self.name}: the heuristic of {name!r}"
                given |= _as_constants({name: trace(rule, visible, what)})
        return arguments_of(self.kernel, self.name, given)

    def _convention(self, arguments: Arguments) -> CallingConvention:
        kinds, whole = specialisations(self.kernel, arguments, self.specialize)
        grid = trace_grid(self.grid, arguments.traced(), self.name)
        candidates = []
        for each in kinds:
            compiled = compile_offline(self.kernel, each, self.job.options, self.archs)
            candidates.append(Candidate(each, compiled, grid))
            if not each.conditions:
                break
        return convention(self.name, candidates, whole=whole)


def _location(kernel: Kernel) -> Location | None:
    code = getattr(kernel.function.fn, "__code__", None)
    if code is None:
        return None
    return Location(code.co_filename, kernel.name, code.co_firstlineno)
