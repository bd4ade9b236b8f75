"""CUDA C++ through NVRTC, NVIDIA's compiler as a library, by the package cuda-bindings.

It needs neither a GPU nor a driver: only `nvrtc` is imported from cuda-bindings.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.cuda.requests import Made, Request
from ferrule.frontends.cuda.standins import standins

_NO_PROGRAM: Final = "NVRTC failed with {} in {}"
_MISSING: Final = re.compile(r'cannot open source file "([^"]*)"')
_HEADERS: Final = (
    "include_paths=[…] says where headers are; those of CUDA come with the packages "
    "nvidia-cuda-runtime, nvidia-cuda-cccl (cuda/std) and nvidia-cuda-crt (mma.h), or a toolkit "
    "below CUDA_HOME"
)
_OF_THE_HOST: Final = (
    "NVRTC has none of the headers of C++, but for a few that are stand-ins here: <cuda/std/…> has "
    'parts of them for kernels; or compile with nvcc, compiler="nvcc"'
)


def find_nvrtc() -> Any | None:
    """The module `cuda.bindings.nvrtc`; None unless the package and the library are installed."""
    try:
        nvrtc = importlib.import_module("cuda.bindings.nvrtc")
        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError, OSError):
        return None
    return nvrtc


def compile_nvrtc(nvrtc: Any, request: Request, arch: str) -> Made:
    """The image for an architecture.  Raises CompileError with NVRTC's messages if it rejects the
    source."""
    source = request.source
    title = source.name.encode(errors="backslashreplace")
    own = [word.removeprefix("-I") for word in request.words if word.startswith("-I")]
    headers = standins([*own, *header_paths()])
    texts, names = ([each.encode() for each in part] for part in (headers.values(), headers))
    program = _call(nvrtc, "CreateProgram", source.data, title, len(headers), texts, names)
    try:
        for name in request.kernels:
            _call(nvrtc, "AddNameExpression", program, name.encode())
        words = [f"--gpu-architecture={arch}", *request.words]
        words += [f"-I{folder}" for folder in header_paths()]
        (result,) = nvrtc.nvrtcCompileProgram(
            program, len(words), [each.encode() for each in words]
        )
        log = _text(nvrtc, program, "ProgramLog").strip()
        if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise _refused(nvrtc, request, arch, log)
        symbols = {
            name: _call(nvrtc, "GetLoweredName", program, name.encode()).decode()
            for name in request.kernels
        }
        image = _data(nvrtc, program, request.form.upper())
        return Made(image, symbols, log, _text(nvrtc, program, "PTX"))
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _refused(nvrtc: Any, request: Request, arch: str, log: str) -> CompileError:
    version = ".".join(map(str, _call(nvrtc, "Version")))
    known = _call(nvrtc, "GetSupportedArchs")
    number = int(arch.removeprefix("sm_").rstrip("af"))
    hint = None
    if number not in known or "--nv_arch" in log:
        hint = (
            f"NVRTC {version} compiles for sm_{', sm_'.join(map(str, known))}, with an a behind "
            "those from 90 on, with an f behind those from 100 on"
        )
    elif header := _MISSING.search(log):
        hint = _HEADERS if "/" in header[1] or "." in header[1] else _OF_THE_HOST
    name = request.source.name
    return CompileError(
        Diagnostic(f"{name} cannot be compiled for {arch} by NVRTC {version}:\n{log}", hint=hint)
    )


def _call(nvrtc: Any, name: str, *arguments: Any) -> Any:
    """Calls a function of NVRTC; returns its result, or a tuple of several."""
    result, *found = getattr(nvrtc, f"nvrtc{name}")(*arguments)
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CompileError(_NO_PROGRAM.format(result.name, f"nvrtc{name}"))
    return found[0] if len(found) == 1 else tuple(found)


def _data(nvrtc: Any, program: Any, what: str) -> bytes:
    data = bytes(_call(nvrtc, f"Get{what}Size", program))
    _call(nvrtc, f"Get{what}", program, data)
    return data


def _text(nvrtc: Any, program: Any, what: str) -> str:
    return _data(nvrtc, program, what).rstrip(b"\0").decode("utf-8", "replace")


_USUAL: Final = Path("/usr/local/cuda")


def header_paths() -> list[Path]:
    """The folders with headers: those of Python packages if they are installed, otherwise those of
    a toolkit.

    The package nvidia-cuda-runtime contains `cuda_fp16.h`, nvidia-cuda-cccl contains `cuda/std`.
    """
    for folder in _candidates():
        if (folder / "cuda_fp16.h").is_file():
            inner = folder / "cccl"
            return [folder, inner] if inner.is_dir() else [folder]
    return []


def _candidates() -> Iterator[Path]:
    spec = importlib.util.find_spec("nvidia")
    for folder in () if spec is None else spec.submodule_search_locations or ():
        yield from sorted(Path(folder).glob("*/include"), reverse=True)
    for home in filter(None, (os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH"))):
        yield Path(home) / "include"
    program = shutil.which("nvcc")
    if program is not None:
        yield Path(program).resolve().parents[1] / "include"
    yield _USUAL / "include"
