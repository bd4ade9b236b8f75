"""SASS, the machine code of kernels for a GPU, as NVIDIA's disassemblers show it."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from ferrule.compiler.cuda.assembly import assemble, find_program
from ferrule.runtime.binaries.images import FoundImage
from ferrule.runtime.errors import StageError

_TOOLS: Final[Mapping[str, tuple[str, ...]]] = {"nvdisasm": (), "cuobjdump": ("-sass",)}
"""The disassemblers, with the options before the file's name."""


def sass_of(ptx: Mapping[str, str], cubins: Iterable[FoundImage]) -> str:
    """The SASS of cubins, and of PTX by architecture, which is assembled first.

    StageError without a disassembler, or with what it says; CompileError without an assembler.
    """
    code = [(found.arch, found.data) for found in cubins]
    code += [(arch, assemble(text, arch).cubin) for arch, text in ptx.items()]
    return "\n".join(f"// {arch}\n{disassembled(data)}" for arch, data in code)


def find_disassembler() -> list[str] | None:
    """The words of a command that shows the SASS of a file; None if this machine has none."""
    for tool, options in _TOOLS.items():
        found = find_program(tool)
        if found is not None:
            return [found, *options]
    return None


def with_lines(cubin: bytes) -> str | None:
    """The SASS of a cubin with the lines that it has been given; None without nvdisasm, which alone
    shows them. StageError with its message."""
    found = find_program("nvdisasm")
    return None if found is None else disassembled(cubin, [found, "--print-line-info"])


def disassembled(cubin: bytes, command: list[str] | None = None) -> str:
    """The SASS of a cubin.  StageError without a disassembler, or with what it says."""
    command = find_disassembler() if command is None else command
    if command is None:
        raise StageError(
            "sass",
            ("ptx",),
            f"{' or '.join(_TOOLS)} shows it, and neither is on the path or below CUDA_HOME: "
            f"install NVIDIA's CUDA toolkit, or pip install nvidia-cuda-nvdisasm",
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernels.cubin"
        path.write_bytes(cubin)
        done = subprocess.run(
            [*command, str(path)], capture_output=True, text=True, errors="replace", check=False
        )
    if done.returncode != 0:
        raise StageError("sass", ("ptx",), f"{command[0]} failed: {done.stderr.strip()}")
    return done.stdout
