"""Options of a compilation: a frozen `Options`, or a string in the style of a command line."""

from __future__ import annotations

import difflib
import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass, replace
from typing import Final, Literal

from ferrule.compiler.errors import CompileError, Diagnostic

Target = Literal["cpu", "cuda"]
TARGETS: Final[tuple[Target, ...]] = ("cpu", "cuda")

GilPolicy = bool | Literal["auto"]
"""Whether calls release the GIL; "auto": where the code can take long or block."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to compile.

    `target`: "cpu" or "cuda"; None chooses (see `choose_target`).  `gpu_arch`: the architecture of
    CUDA kernels, such as "sm_90a"; None takes `FERRULE_GPU_ARCH`, or that of the first GPU.
    `opt_level`: LLVM's, 0 to 3, for the body.  `strip_paths` leaves paths of source files out of
    the object, and so out of the tracebacks of its errors.  `host_cpu` and `host_target` are what
    is exported for: "baseline", "native" or "x86-64-v2" to "x86-64-v4", and a triple.
    `release_gil`: whether calls from Python release the GIL; "auto" where the body can be long.
    `enable_tvm_ffi` is accepted for CuTe's
    sake: every function is a TVM-FFI function.
    """

    target: Target | None = None
    gpu_arch: str | None = None
    opt_level: int = 3
    enable_tvm_ffi: bool = True
    strip_paths: bool = False
    host_cpu: str | None = None
    host_target: str | None = None
    release_gil: GilPolicy = "auto"

    def __post_init__(self) -> None:
        if self.target is not None and self.target not in TARGETS:
            raise CompileError(_unknown_target(self.target, "the option target"))
        if not isinstance(self.gpu_arch, str | None):
            raise CompileError(
                f"gpu_arch must be a str such as 'sm_90a', but got {self.gpu_arch!r}"
            )
        for name in ("host_cpu", "host_target"):
            value = getattr(self, name)
            if not isinstance(value, str | None):
                raise CompileError(f"{name} must be a str, but got {value!r}")
        if self.release_gil != "auto" and not isinstance(self.release_gil, bool):
            raise CompileError(
                f"release_gil must be True, False or 'auto', but got {self.release_gil!r}"
            )
        if self.opt_level not in (0, 1, 2, 3) or isinstance(self.opt_level, bool):
            raise CompileError(f"opt_level must be 0, 1, 2 or 3, but got {self.opt_level!r}")


def _unknown_target(value: object, where: str) -> Diagnostic:
    return Diagnostic(f"{where} is {value!r}", expected=" or ".join(TARGETS))


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


def _set_gpu_arch(options: Options, value: str) -> Options:
    return replace(options, gpu_arch=value)


def _set_host_cpu(options: Options, value: str) -> Options:
    return replace(options, host_cpu=value)


def _set_host_target(options: Options, value: str) -> Options:
    return replace(options, host_target=value)


_FLAGS: Final[Mapping[str, Callable[[Options], Options]]] = {
    "--enable-tvm-ffi": lambda options: replace(options, enable_tvm_ffi=True),
    "--strip-paths": lambda options: replace(options, strip_paths=True),
}
_SETTINGS: Final[Mapping[str, Callable[[Options, str], Options]]] = {
    "--target": _set_target,
    "--gpu-arch": _set_gpu_arch,
    "--host-cpu": _set_host_cpu,
    "--host-target": _set_host_target,
    "--release-gil": _set_release_gil,
    "--opt-level": _set_opt_level,
}


def parse_options(options: str | Options | None) -> Options:
    """The options that a user gave.  Raises CompileError for unknown ones and wrong values."""
    match options:
        case None:
            return Options()
        case Options():
            return options
        case str():
            return _parse_words(_split(options))
    raise CompileError(
        Diagnostic(
            f"options must be a string or an Options object, but got {options!r}",
            hint='write options="--target cpu" or options=fe.Options(target="cpu")',
        )
    )


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise CompileError(f"options {text!r} cannot be read: {error}") from None


def _parse_words(words: list[str]) -> Options:
    options = Options()
    rest = iter(words)
    for word in rest:
        name, equals, inline = word.partition("=")
        if name in _FLAGS and not equals:
            options = _FLAGS[name](options)
        elif name in _FLAGS:
            raise CompileError(f"option {name} takes no value, but got {inline!r}")
        elif name in _SETTINGS:
            value = inline if equals else next(rest, None)
            if value is None:
                raise CompileError(f"option {name} needs a value")
            options = _SETTINGS[name](options, value)
        else:
            raise CompileError(_unknown_option(name))
    return options


def _unknown_option(name: str) -> Diagnostic:
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
