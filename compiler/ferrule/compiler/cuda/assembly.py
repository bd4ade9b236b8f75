"""Assembles PTX ahead of time: with ptxas, or nvJitLink of the package `cuda-bindings`.

Both print the resources that each kernel uses, which `kernel_info` parses.  Each runs in a separate
process, so that a crash of it does no harm.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.cuda.kernelfacts import KernelImage
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.runtime.artefacts import KernelInfo
from ferrule.specs.deferred import dataclass

_INSTALL: Final = (
    "install the package nvidia-cuda-nvcc, which has ptxas, or cuda-bindings and nvidia-nvjitlink"
)
_NO_NVJITLINK: Final = 3
"""The exit status of the nvJitLink process if there is no nvJitLink."""

_NVJITLINK: Final = f"""
import sys
try:
    from cuda.bindings import nvjitlink
    nvjitlink.version()
except Exception as error:
    print(error, file=sys.stderr)
    sys.exit({_NO_NVJITLINK})
source, target, *options = sys.argv[1:]
code = open(source, "rb").read()
handle = nvjitlink.create(len(options), options)
def log(kind):
    text = bytearray(getattr(nvjitlink, f"get_{{kind}}_log_size")(handle))
    getattr(nvjitlink, f"get_{{kind}}_log")(handle, text)
    print(text.rstrip(bytes(1)).decode(), file=sys.stderr)
try:
    nvjitlink.add_data(handle, nvjitlink.InputType.PTX, code, len(code), "kernels")
    nvjitlink.complete(handle)
    cubin = bytearray(nvjitlink.get_linked_cubin_size(handle))
    nvjitlink.get_linked_cubin(handle, cubin)
except nvjitlink.nvJitLinkError:
    log("error")
    sys.exit(1)
log("info")
open(target, "wb").write(cubin)
"""


@dataclass(frozen=True, slots=True)
class Assembled:
    """A cubin, and the resources of each kernel."""

    cubin: bytes = field(repr=False)
    kernels: dict[str, KernelInfo]


def assemble(ptx: str, arch: str, words: Sequence[str] = ()) -> Assembled:
    """The cubin of PTX text for an architecture; `words` are options of ptxas.

    Raises CompileError if there is no assembler, or with its messages if it rejects the text.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "kernels.ptx", Path(folder) / "kernels.cubin"
        source.write_text(ptx, encoding="utf-8")
        for command in _commands(source, target, arch, words):
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False
            )
            said = done.stderr + done.stdout
            if done.returncode == 0 and target.exists():
                return Assembled(target.read_bytes(), read_info(said))
            if done.returncode != _NO_NVJITLINK or command[0] != sys.executable:
                raise CompileError(
                    f"the kernels cannot be assembled for {arch}: {_shortened(said)}"
                )
    raise CompileError(
        Diagnostic(
            "there is no ptxas and no nvJitLink, one of which assembles kernels",
            hint=_INSTALL,
        )
    )


def _commands(source: Path, target: Path, arch: str, words: Sequence[str]) -> Iterator[list[str]]:
    """The command line of each possible assembler."""
    ptxas = find_ptxas()
    if ptxas is not None:
        yield [ptxas, f"-arch={arch}", "-v", *words, str(source), "-o", str(target)]
        return
    options = [f"-arch={arch}", "-verbose", *(f"-Xptxas={word}" for word in words)]
    yield [sys.executable, "-c", _NVJITLINK, str(source), str(target), *options]


def find_ptxas() -> str | None:
    """ptxas: on the path, below CUDA_HOME or CUDA_PATH, or of a Python package."""
    return find_program("ptxas")


def find_program(name: str) -> str | None:
    """A program of NVIDIA's toolkit: on the path, below CUDA_HOME or CUDA_PATH, or of a Python
    package."""
    found = shutil.which(name)
    if found is not None:
        return found
    homes = filter(None, (os.environ.get(home) for home in ("CUDA_HOME", "CUDA_PATH")))
    programs = [Path(home) / "bin" / name for home in homes]
    programs += [path for folder in _packages() for path in sorted(folder.glob(f"*/bin/{name}"))]
    return next((str(path) for path in programs if os.access(path, os.X_OK)), None)


def _packages() -> list[Path]:
    """The folders of NVIDIA's Python packages."""
    spec = importlib.util.find_spec("nvidia")
    return [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec else []


_PROPERTIES: Final = re.compile(
    r"Function properties for (\S+)\n.*?(\d+) bytes stack frame, (\d+) bytes spill stores, "
    r"(\d+) bytes spill loads\n.*?Used (\d+) registers([^\n]*)"
)


def read_info(said: str) -> dict[str, KernelInfo]:
    """Parse the output of `ptxas -v` about each kernel."""
    return {
        name: KernelInfo(
            registers=int(registers),
            spill_stores=int(stores),
            spill_loads=int(loads),
            stack=int(stack),
            shared=_bytes(rest, "smem"),
        )
        for name, stack, stores, loads, registers, rest in _PROPERTIES.findall(said)
    }


def _bytes(text: str, what: str) -> int:
    found = re.search(rf"(\d+) bytes {what}", text)
    return 0 if found is None else int(found[1])


def kernel_info(code: DeviceCode) -> dict[str, dict[str, KernelInfo]]:
    """The resources of each kernel, by architecture and name.  CompileError if they are not
    known."""
    without = [image.arch for image in code.images if not image.modules]
    if without:
        raise CompileError(
            Diagnostic(
                f"the kernels for {', '.join(without)} came as a cubin, which does not say",
                hint="DeviceCode.parameters(kernel) has the registers and the shared memory",
            )
        )
    return {
        image.arch: {
            name: info
            for module in image.modules
            for name, info in assemble(module, image.arch, code.ptxas_options).kernels.items()
        }
        for image in code.images
    }


def with_cubin(image: KernelImage, words: Sequence[str]) -> KernelImage:
    """The image with its cubin."""
    cubins = tuple(assemble(module, image.arch, words).cubin for module in image.modules)
    return KernelImage(image.arch, image.modules, cubins)


def _shortened(said: str, lines: int = 12) -> str:
    kept = [line for line in said.splitlines() if line.strip() and "info    :" not in line]
    return "\n".join(kept[:lines]) or "it does not say why"
