"""Options of a compilation: a frozen `Options`, or a string in the style of a command line."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from typing import Any, Final, Literal

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.specs import params
from ferrule.specs.copies import changed, mapped
from ferrule.specs.deferred import dataclass

Target = Literal["cpu", "cuda"]
TARGETS: Final[tuple[Target, ...]] = ("cpu", "cuda")

Pipeline = Literal["llvm", "mlir"]
PIPELINES: Final[tuple[Pipeline, ...]] = ("llvm", "mlir")

IndexBitwidth = Literal[32, 64]

GilPolicy = bool | Literal["auto"]
"""Whether calls release the GIL; "auto": only if the code can take long or block."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to compile.

    `target`: "cpu" or "cuda"; None chooses (see `choose_target`).  `gpu_arch`: the architecture of
    CUDA kernels, such as "sm_90a", or several, as a list or with commas between them; None takes
    `FERRULE_GPU_ARCH`, or the architecture of the first GPU.
    `opt_level`: LLVM's, 0 to 3, for the body and for kernels.  `strip_paths` leaves paths of source
    files out of the object, and so out of the tracebacks of its errors.  `host_cpu` and
    `host_target` are the CPU and the platform of exported code: "baseline", "native" or "x86-64-v2"
    to "x86-64-v4", and a triple.
    `release_gil`: whether calls from Python release the GIL; "auto" where the body can be long.
    `enable_checks`: whether indices, divisions, alignment and shared memory are checked while a
    function runs (CPU only).  `pipeline`: "llvm" is ferrule's own lowering, "mlir" a second one, of
    `ferrule[mlir]`, through MLIR's passes.  `cache`: whether the cache may have the function, and
    keeps it.  `fast_math`: floats may be computed in another order and with other roundings, see
    `jit`; for CUDA kernels `fast=True` for all maths functions, and approximate division.  `fmad`:
    whether a product and the sum that reads it are one operation, which rounds once, where a
    function does not say; None: on a GPU, as in CUDA, and not on the CPU.
    `dynamic_layout`: real tensors as examples stand for tensors of all sizes and strides whose
    innermost dim is the same one, as with `from_dlpack(tensor).mark_layout_dynamic()`.
    `enable_tvm_ffi` is accepted for compatibility with CuTe, without effect: every function is a
    TVM-FFI function.

    The other options are for CUDA kernels, and have no effect on the CPU but for
    `generate_line_info`: one text of options does for both targets.  `cubin`: assemble the
    kernels at compile time, with ptxas or nvJitLink, instead of in the driver; `ptxas_options` are
    options for this.  `keep_ptx` and `keep_cubin` write files into the folder `dump_dir`, by
    default the current one; `dump_dir` alone writes the PTX.  `generate_line_info`: profilers show
    the lines of the source.  `libdevice`: NVIDIA's functions instead of ferrule's own.
    `noalias` promises that a tensor which a kernel writes does not overlap with another of its
    tensors.  `index_bitwidth`: the bits in which offsets of elements are computed.  None: 32 where
    they fit, which each launch finds out for kernels that it makes shorter, else 64.  32 refuses a
    call whose tensors are larger, 64 has one kernel for all tensors; both compile less.
    """

    target: Target | None = None
    gpu_arch: str | Sequence[str] | None = None
    opt_level: int = 3
    enable_tvm_ffi: bool = True
    strip_paths: bool = False
    host_cpu: str | None = None
    host_target: str | None = None
    release_gil: GilPolicy = "auto"
    enable_checks: bool = False
    cubin: bool = False
    ptxas_options: str = ""
    keep_ptx: bool = False
    keep_cubin: bool = False
    dump_dir: str | None = None
    generate_line_info: bool = False
    fast_math: bool = False
    libdevice: bool = False
    noalias: bool = False
    pipeline: Pipeline = "llvm"
    cache: bool = True
    fmad: bool | None = None
    index_bitwidth: IndexBitwidth | None = None
    dynamic_layout: bool = False

    def __post_init__(self) -> None:
        if self.target is not None and not _is_one_of(self.target, TARGETS):
            raise CompileError(_unknown_target(self.target, "the option target"))
        object.__setattr__(self, "gpu_arch", _joined(self.gpu_arch))
        for name in ("host_cpu", "host_target", "dump_dir"):
            value = getattr(self, name)
            if not isinstance(value, str | None):
                raise CompileError(f"{name} must be a str, but got {value!r}")
        if not isinstance(self.ptxas_options, str):
            raise CompileError(f"ptxas_options must be a str, but got {self.ptxas_options!r}")
        for name in ("enable_tvm_ffi", "strip_paths", "cache", "dynamic_layout", *_SWITCHES):
            if not isinstance(getattr(self, name), bool):
                raise CompileError(f"{name} must be a bool, but got {getattr(self, name)!r}")
        if not _is_one_of(self.release_gil, ("auto",)) and not isinstance(self.release_gil, bool):
            raise CompileError(
                f"release_gil must be True, False or 'auto', but got {self.release_gil!r}"
            )
        if not isinstance(self.fmad, bool | None):
            raise CompileError(f"fmad must be True, False or None, but got {self.fmad!r}")
        if not _is_bitwidth(self.index_bitwidth):
            raise CompileError(
                f"index_bitwidth must be 32, 64 or None, but got {self.index_bitwidth!r}"
            )
        if not _is_one_of(self.pipeline, PIPELINES):
            raise CompileError(_unknown_pipeline(self.pipeline, "the option pipeline"))
        if type(self.opt_level) is not int or not 0 <= self.opt_level <= 3:
            raise CompileError(f"opt_level must be 0, 1, 2 or 3, but got {self.opt_level!r}")


_SWITCHES: Final = (
    *("cubin", "keep_ptx", "keep_cubin", "generate_line_info", "fast_math", "libdevice"),
    "noalias",
)
"""Options that are on or off, for CUDA kernels."""


def _is_one_of(value: object, words: Iterable[str]) -> bool:
    return isinstance(value, str) and value in words


def _is_bitwidth(value: object) -> bool:
    return value is None or (type(value) is int and value in (32, 64))


def _joined(gpu_arch: object) -> str | None:
    """The architectures with commas between them."""
    if isinstance(gpu_arch, str | None):
        return gpu_arch
    if isinstance(gpu_arch, list | tuple) and gpu_arch:
        archs = [arch for arch in gpu_arch if isinstance(arch, str)]
        if len(archs) == len(gpu_arch):
            return ",".join(archs)
    raise CompileError(f"gpu_arch must be a str such as 'sm_90a', but got {gpu_arch!r}")


def _unknown_target(value: object, where: str) -> Diagnostic:
    return Diagnostic(f"{where} is {value!r}", expected=" or ".join(TARGETS))


def _unknown_pipeline(value: object, where: str) -> Diagnostic:
    return Diagnostic(f"{where} is {value!r}", expected=" or ".join(PIPELINES))


def _set_pipeline(options: Options, value: str) -> Options:
    if value not in PIPELINES:
        raise CompileError(_unknown_pipeline(value, "--pipeline"))
    return replace(options, pipeline=value)


def _set_target(options: Options, value: str) -> Options:
    if value not in TARGETS:
        raise CompileError(_unknown_target(value, "--target"))
    return replace(options, target=value)


def _set_opt_level(options: Options, value: str) -> Options:
    if value not in ("0", "1", "2", "3"):
        raise CompileError(f"--opt-level must be 0, 1, 2 or 3, but got {value!r}")
    return replace(options, opt_level=int(value))


def _set_release_gil(options: Options, value: str) -> Options:
    chosen: dict[str, GilPolicy] = {"auto": "auto", "true": True, "false": False}
    if value not in chosen:
        raise CompileError(f"--release-gil must be auto, true or false, but got {value!r}")
    return replace(options, release_gil=chosen[value])


def _set_fmad(options: Options, value: str) -> Options:
    if value not in ("true", "false"):
        raise CompileError(f"--fmad must be true or false, but got {value!r}")
    return replace(options, fmad=value == "true")


def _set_index_bitwidth(options: Options, value: str) -> Options:
    chosen: dict[str, IndexBitwidth | None] = {"auto": None, "32": 32, "64": 64}
    if value not in chosen:
        raise CompileError(f"--index-bitwidth must be auto, 32 or 64, but got {value!r}")
    return replace(options, index_bitwidth=chosen[value])


def _set_gpu_arch(options: Options, value: str) -> Options:
    return replace(options, gpu_arch=value)


def _set_host_cpu(options: Options, value: str) -> Options:
    return replace(options, host_cpu=value)


def _set_host_target(options: Options, value: str) -> Options:
    return replace(options, host_target=value)


def _switch(name: str) -> Callable[[Options], Options]:
    changed: dict[str, Any] = {name: True}
    return lambda options: replace(options, **changed)


def _text(name: str) -> Callable[[Options, str], Options]:
    def set_text(options: Options, value: str) -> Options:
        changed: dict[str, Any] = {name: value}
        return replace(options, **changed)

    return set_text


_FLAGS: Final[Mapping[str, Callable[[Options], Options]]] = {
    "--enable-tvm-ffi": lambda options: replace(options, enable_tvm_ffi=True),
    "--strip-paths": lambda options: replace(options, strip_paths=True),
    "--enable-checks": lambda options: replace(options, enable_checks=True),
    "--enable-assertions": lambda options: replace(options, enable_checks=True),
    "--no-cache": lambda options: replace(options, cache=False),
    "--dynamic-layout": _switch("dynamic_layout"),
    **{"--" + name.replace("_", "-"): _switch(name) for name in _SWITCHES},
}
_WITHOUT_VALUE: Final[Mapping[str, str]] = {"--fmad": "true"}
"""What a setting means without a value."""
_SETTINGS: Final[Mapping[str, Callable[[Options, str], Options]]] = {
    "--target": _set_target,
    "--gpu-arch": _set_gpu_arch,
    "--host-cpu": _set_host_cpu,
    "--host-target": _set_host_target,
    "--release-gil": _set_release_gil,
    "--opt-level": _set_opt_level,
    "--fmad": _set_fmad,
    "--index-bitwidth": _set_index_bitwidth,
    "--ptxas-options": _text("ptxas_options"),
    "--dump-dir": _text("dump_dir"),
    "--pipeline": _set_pipeline,
}


def parse_options(options: str | Options | None) -> Options:
    """The options that a user gave.  Raises CompileError for unknown ones and wrong values."""
    match options:
        case None:
            return Options()
        case Options():
            return options
        case str():
            return _parse_words(_split(options), Options())
    raise CompileError(
        Diagnostic(
            f"options must be a string or an Options object, but got {options!r}",
            hint='write options="--target cpu" or options=fe.Options(target="cpu")',
        )
    )


def add_options(options: str | Options | None, words: str) -> Options:
    """The options with those of a text, which take their place.  Raises as `parse_options`."""
    return _parse_words(_split(words), parse_options(options))


def _split(text: str) -> list[str]:
    import shlex  # few compilations have options as text

    try:
        return shlex.split(text)
    except ValueError as error:
        raise CompileError(f"options {text!r} cannot be read: {error}") from None


def _parse_words(words: list[str], options: Options) -> Options:
    rest = deque(words)
    while rest:
        word = rest.popleft()
        name, equals, inline = word.partition("=")
        if name in _FLAGS and not equals:
            options = _FLAGS[name](options)
        elif name in _FLAGS:
            raise CompileError(f"option {name} takes no value, but got {inline!r}")
        elif name in _SETTINGS:
            value = inline if equals else _next_value(name, rest)
            if value is None:
                raise CompileError(f"option {name} needs a value")
            options = _SETTINGS[name](options, value)
        else:
            raise CompileError(_unknown_option(name))
    return options


def _next_value(name: str, rest: deque[str]) -> str | None:
    """The word after an option, or what the option means without one; None if it needs one."""
    alone = _WITHOUT_VALUE.get(name)
    if alone is not None and (not rest or rest[0].startswith("--")):
        return alone
    return rest.popleft() if rest else None


def _unknown_option(name: str) -> Diagnostic:
    import difflib

    known = [*_FLAGS, *_SETTINGS]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else None
    return Diagnostic(f"unknown option {name!r}", expected=", ".join(known), hint=hint)


def choose_target(
    options: Options,
    devices: Iterable[str],
    environ: Mapping[str, str],
    gpus: Callable[[], Sized],
) -> Target:
    """The target: the option; else CUDA if an example lives there, the CPU if one lives there;
    else `FERRULE_TARGET`; else CUDA where `gpus()` finds one, and the CPU where it finds none.

    Raises CompileError for an unknown `FERRULE_TARGET`, or examples on a device that no target
    serves.
    """
    places = sorted(set(devices))
    for device in places:
        if device not in TARGETS:
            raise CompileError(
                Diagnostic(
                    f"an example argument lives on the device {device!r}, which no target serves",
                    expected=" or ".join(TARGETS),
                )
            )
    if options.target is not None:
        return options.target
    if places:
        return "cuda" if "cuda" in places else "cpu"
    chosen = environ.get("FERRULE_TARGET")
    if not chosen:
        return "cuda" if len(gpus()) else "cpu"
    if chosen not in TARGETS:
        raise CompileError(_unknown_target(chosen, "the environment variable FERRULE_TARGET"))
    return chosen


def default_environment() -> Mapping[str, str]:
    """The process's environment, as `choose_target` reads it."""
    return os.environ


def for_target(
    parameters: Sequence[params.Param], options: Options
) -> tuple[tuple[params.Param, ...], Options]:
    """The parameters on the target of a compilation, and the options with it."""
    # Frontends read options and import no runtime, which imports tvm-ffi.
    from ferrule.runtime.devices import cuda_devices, emulated_arch

    devices = [device for param in parameters for device in _devices(param)]
    environ = default_environment()
    target = choose_target(options, devices, environ, cuda_devices)
    arch = None
    if target == "cuda" and options.enable_checks:
        raise CompileError(
            Diagnostic(
                "--enable-checks is for the CPU: code for a GPU has no checks",
                hint='compile for the CPU, options="--target cpu --enable-checks"',
            )
        )
    if target == "cuda":
        from ferrule.compiler.cuda.archs import choose_archs

        assert isinstance(options.gpu_arch, str | None), "Options joins a list"
        arch = ",".join(choose_archs(options.gpu_arch, environ, cuda_devices))
        if emulated_arch() is not None:  # its errors name the lines of the source
            options = replace(options, generate_line_info=True)
    placed = tuple(_placed(param, target) for param in parameters)
    return placed, replace(options, target=target, gpu_arch=arch)


def _devices(param: params.Param) -> Iterator[str]:
    """The devices in the specs of a parameter's tensors."""
    match param:
        case params.Tensor(device=str(device)):
            yield device
        case params.Tuple(items=items) | params.Union(members=items):
            for item in items:
                yield from _devices(item)
        case params.Optional(item=item):
            yield from _devices(item)


def _placed(param: params.Param, target: str) -> params.Param:
    """The parameter with the target's device in tensors without one; a tensor on another device is
    an error."""

    def change(each: params.Param) -> params.Param:
        if not isinstance(each, params.Tensor):
            return each
        if each.device in (None, target):
            return changed(each, device=target)
        raise CompileError(
            Diagnostic(
                f"the example for {param.name!r} lives on {each.device}, but the target is "
                f"{target}",
                hint=f"pass a tensor on {target}, or a fake tensor, which need not be anywhere",
            )
        )

    return mapped(param, change)
