"""`ferrule doctor`: what this machine has of what ferrule can use, and what to do for the rest."""

from __future__ import annotations

import argparse
import ctypes
import difflib
import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Final, Literal, NamedTuple

from ferrule.commands.output import Output
from ferrule.commands.versions import installed, tvm_ffi_text

State = Literal["ok", "none", "problem"]


class Row(NamedTuple):
    """One thing: its state, what there is, and what to do if it is missing.

    Nothing of ferrule is imported for it: what is missing may be what ferrule imports.
    """

    what: str
    state: State
    text: str
    advice: str = ""


def run(given: argparse.Namespace, output: Output) -> int:
    """Run the command; returns the exit code."""
    found: dict[str, list[Row]] = {}
    for title, rows in _SECTIONS.items():
        output.line(title)
        found[title] = [row for make in rows for row in _made(make)]
        width = max((len(row.what) for row in found[title]), default=0)
        for row in found[title]:
            output.line(f"  {row.what.ljust(width)}  {row.state.ljust(7)}  {row.text}".rstrip())
            if row.advice:
                output.line(f"  {' ' * width}           {row.advice}")
    every = [row for rows in found.values() for row in rows]
    is_good = all(row.state != "problem" for row in every)
    output.put(ok=is_good, sections={t: [r._asdict() for r in rows] for t, rows in found.items()})
    return 0 if is_good else 1


def _made(make: Callable[[], Iterator[Row]]) -> list[Row]:
    """The rows; an error while looking is a row too, so that the others are still shown."""
    try:
        return list(make())
    except Exception as error:
        name = make.__name__.strip("_").replace("_", " ")
        return [Row(name, "problem", f"{type(error).__name__}: {error}")]


def _python() -> Iterator[Row]:
    state: State = "ok" if sys.version_info >= (3, 10) else "problem"
    text = f"{platform.python_version()}, {sys.executable}"
    yield Row("Python", state, text, "" if state == "ok" else "ferrule needs Python 3.10 or newer")


_CORE: Final = {
    "llvmlite": "llvmlite",
    "apache-tvm-ffi": "tvm_ffi",
    "numpy": "numpy",
    "typing_extensions": "typing_extensions",
}
"""What ferrule cannot work without: packages, and the modules that it imports of them."""


def _core() -> Iterator[Row]:
    for package, module in _CORE.items():
        version = installed(package)
        if version is None or not _has_module(module):
            yield Row(package, "problem", "is not installed", f"pip install {package}")
        else:
            yield Row(package, "ok", version)


def _ferrule() -> Iterator[Row]:
    from ferrule.specs._version import __version__

    yield Row("ferrule", "ok", __version__)


def _libtvm_ffi() -> Iterator[Row]:
    yield Row("tvm-ffi", "ok", tvm_ffi_text())


def _llvm() -> Iterator[Row]:
    from llvmlite import binding

    from ferrule.compiler import targets

    here = targets.host()
    yield Row("LLVM", "ok", ".".join(map(str, binding.llvm_version_info)))
    yield Row("CPU", "ok", f"{here.cpu}, {here.triple}")


def _calls() -> Iterator[Row]:
    from ferrule.runtime import why_generic_calls

    why = why_generic_calls()
    if why is None:
        yield Row("fast calls", "ok", "calls from Python use generated code")
    else:
        yield Row("fast calls", "none", f"calls are several times slower: {why}")


def _works() -> Iterator[Row]:
    """A function is compiled and called: the whole way once."""
    from ferrule import specs
    from ferrule.commands.trial import add_one

    try:
        answer = add_one()
    except Exception as error:
        yield Row("a compilation", "problem", f"{type(error).__name__}: {error}")
        return
    state: State = "ok" if answer == 42 else "problem"
    yield Row("a compilation", state, f"a function of one {specs.Int32.name} gave {answer} for 41")


def _linker() -> Iterator[Row]:
    from ferrule.commands.trial import link
    from ferrule.runtime import LinkError

    try:
        yield Row("C compiler", "ok", link())
    except LinkError as error:
        chosen = os.environ.get("CC")
        advice = "apt install gcc, or set CC; objects (.o) and archives (.a) need none"
        if chosen:
            advice = f"CC={chosen} is no C compiler that links here: unset it, or name another one"
        text = "shared libraries and wheels need one"
        yield Row("C compiler", "none", f"{text}: {str(error).splitlines()[0]}", advice)


def _disassembler() -> Iterator[Row]:
    found = shutil.which("llvm-objdump") or shutil.which("objdump")
    if found:
        yield Row("objdump", "ok", found)
    else:
        advice = "apt install binutils"
        yield Row("objdump", "none", "shows the assembly of built files", advice)


def _openmp() -> Iterator[Row]:
    from ferrule.compiler.threads.openmp import INSTALLED
    from ferrule.runtime.linking import openmp

    found = openmp.offer() or next(filter(_can_load, INSTALLED), None)
    text = found or "a kernel runs on one core without it"
    advice = "" if found else f"apt install libgomp1, or {_pip('openmp')}"
    yield Row("OpenMP", "ok" if found else "none", text, advice)


def _can_load(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _cache() -> Iterator[Row]:
    from ferrule.compiler import cache

    found = cache.info()
    if not found.is_on:
        yield Row("cache", "none", "off: every process compiles again", "unset FERRULE_CACHE")
    elif found.folder is None:
        yield Row("cache", "none", "there is no home", "set FERRULE_CACHE_DIR")
    else:
        yield Row("cache", "ok", f"{found.folder}: {found.entries} entries, {found.bytes} bytes")


def _gpu() -> Iterator[Row]:
    from ferrule.runtime.devices import cuda_devices, emulated_arch

    emulated, devices = emulated_arch(), cuda_devices()
    if emulated is not None:
        yield Row("GPU", "ok", f"emulated: {emulated}, {len(devices)} of them")
    elif devices:
        capabilities = ", ".join(f"{major}.{minor}" for major, minor in devices)
        yield Row("GPU", "ok", f"{len(devices)}, compute capability {capabilities}")
    else:
        yield Row(
            "GPU",
            "none",
            "no CUDA driver, or it has no device; kernels compile for one all the same",
            "FERRULE_GPU=emulated:sm_90a executes kernels without a GPU",
        )


def _assembler() -> Iterator[Row]:
    from ferrule.compiler.cuda.assembly import find_ptxas

    found = find_ptxas()
    linker = _has_module("nvidia.nvjitlink") or _has_module("cuda.bindings.nvjitlink")
    if found:
        yield Row("ptxas", "ok", found)
    elif linker:
        yield Row("nvJitLink", "ok", "assembles cubins in place of ptxas")
    else:
        text = "cubins and kernel_info need it; the driver assembles PTX without it"
        yield Row("ptxas", "none", text, "pip install nvidia-cuda-nvcc, or " + _pip("cuda"))


def _sass() -> Iterator[Row]:
    from ferrule.compiler.cuda.disassembly import find_disassembler

    found = find_disassembler()
    advice = "" if found else "pip install nvidia-cuda-nvdisasm"
    text = found[0] if found else "shows the machine code of kernels"
    yield Row("nvdisasm", "ok" if found else "none", text, advice)


def _has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _pip(extra: str) -> str:
    return f"pip install 'ferrule[{extra}]'"


_PACKAGES: Final = (
    ("Triton", "triton", "triton"),
    ("CUDA C++ (NVRTC)", "cuda.bindings", "cuda"),
    ("Numba", "numba", "numba"),
    ("Warp", "warp", "warp"),
    ("cuTile", "cuda.tile", "cutile"),
    ("TileLang", "tilelang", "tilelang"),
    ("MLIR", "torch_mlir", "mlir"),
)
_DISTRIBUTIONS: Final = {
    "cuda.bindings": "cuda-bindings",
    "warp": "warp-lang",
    "cuda.tile": "cuda-tile",
    "torch_mlir": "torch-mlir",
}


def _c_frontend() -> Row:
    from ferrule.compiler.errors import CompileError
    from ferrule.frontends.ccompilers import compiler_words

    try:
        return Row("C", "ok", " ".join(compiler_words(None)))
    except CompileError as error:
        what, *advice = str(error).splitlines()
        return Row("C", "none", what, " ".join(each.strip() for each in advice))


def _frontends() -> Iterator[Row]:
    yield _c_frontend()
    for title, module, extra in _PACKAGES:
        if _has_module(module):
            version = installed(_DISTRIBUTIONS.get(module, module)) or "of unknown version"
            yield Row(title, "ok", version)
        else:
            yield Row(title, "none", f"{module} is not installed", _pip(extra))


def _frameworks() -> Iterator[Row]:
    for package in ("torch", "jax", "cupy"):
        version = installed(package)
        if version is None:
            yield Row(package, "none", f"only programs with {package} need it")
        else:
            yield Row(package, "ok", version)


VARIABLES: Final = (
    *("FERRULE_CACHE", "FERRULE_CACHE_DIR", "FERRULE_CACHE_KEY", "FERRULE_CACHE_REMOTE"),
    *("FERRULE_CACHE_SIZE", "FERRULE_GPU", "FERRULE_GPU_ARCH", "FERRULE_JIT_INFO", "FERRULE_LOG"),
    *("FERRULE_MLIR", "FERRULE_NUM_THREADS", "FERRULE_TARGET", "FERRULE_VERIFY"),
)
"""The variables of the environment that ferrule reads."""

_SECRET: Final = "FERRULE_CACHE_KEY"


def _environment() -> Iterator[Row]:
    for name in sorted(name for name in os.environ if name.startswith("FERRULE_")):
        value = "(set)" if name == _SECRET else os.environ[name]
        if name in VARIABLES:
            yield Row(name, "ok", value)
            continue
        near = difflib.get_close_matches(name, VARIABLES, 1)
        advice = f"did you mean {near[0]}?" if near else f"there are: {', '.join(VARIABLES)}"
        yield Row(name, "none", "ferrule reads no variable of this name", advice)
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        yield Row(
            "PYTHONDONTWRITEBYTECODE",
            "none",
            "Python compiles ferrule's source in every process, which doubles the start",
            "unset it, or run python -m compileall once",
        )


_Maker = Callable[[], Iterator[Row]]
_SECTIONS: Final[dict[str, tuple[_Maker, ...]]] = {
    "ferrule": (_python, _core, _ferrule, _libtvm_ffi, _llvm, _calls, _works),
    "tools": (_linker, _disassembler, _openmp, _cache),
    "GPUs": (_gpu, _assembler, _sass),
    "frontends": (_frontends,),
    "frameworks": (_frameworks,),
    "environment": (_environment,),
}
