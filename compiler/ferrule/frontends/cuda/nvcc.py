"""CUDA C++ through nvcc, the compiler of a CUDA toolkit; nvcc itself needs a C++ compiler."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.cuda.requests import Form, Made, Request
from ferrule.frontends.sources import hint_for_headers

_MARK: Final = "ferrule_kernel_"
_NAMES: Final = "the names of kernels"
_TWICE: Final = re.compile(
    rf"^{_NAMES}\((\d+)\): error: .* explicitly instantiated more than once", re.M
)
"""The message about a template that the source itself instantiates."""
_NAMED: Final = re.compile(rf"\b{_MARK}(\d+)\s*=\s*(?:generic\()?([\w$]+)")


def find_nvcc() -> str | None:
    """nvcc: on the path, or below CUDA_HOME or CUDA_PATH."""
    found = shutil.which("nvcc")
    homes = filter(None, (os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")))
    programs = (Path(home) / "bin" / "nvcc" for home in homes)
    return found or next((str(path) for path in programs if os.access(path, os.X_OK)), None)


def compile_nvcc(program: str, request: Request, arch: str) -> Made:
    """The image for an architecture.  Raises CompileError with nvcc's messages if it rejects the
    source.

    The symbol of each kernel is read from the PTX, in which a variable contains its address: the
    reference also instantiates a template.
    """
    names: dict[str, str] = {}
    if request.kernels:
        marks = [
            f'extern "C" __device__ const void* const {_MARK}{number} = (const void*)&{name};'
            for number, name in enumerate(request.kernels)
        ]
        ptx, _, _ = _run(program, request, arch, "ptx", marks)
        found = {int(number): name for number, name in _NAMED.findall(ptx.decode())}
        names = {name: found[number] for number, name in enumerate(request.kernels)}
    instances = [
        f"template __global__ decltype({name}) {name};" for name in request.kernels if "<" in name
    ]
    try:
        image, log, text = _run(program, request, arch, request.form, instances)
    except CompileError as error:
        there = {int(line) - 1 for line in _TWICE.findall(str(error))}
        if not there:
            raise
        more = [each for number, each in enumerate(instances) if number not in there]
        image, log, text = _run(program, request, arch, request.form, more)
    return Made(image, names, log, text)


def _run(
    program: str, request: Request, arch: str, form: Form, lines: Sequence[str]
) -> tuple[bytes, str, str]:
    """The image of the source with `lines` appended, nvcc's output, and the image's PTX, which is
    "" if nvcc kept none."""
    source = request.source
    with tempfile.TemporaryDirectory() as folder:
        file, target = Path(folder) / "source.cu", Path(folder) / f"kernels.{form}"
        quoted = source.name.replace("\\", "\\\\").replace('"', '\\"')
        more = [f'#line 1 "{_NAMES}"', *lines] if lines else []
        head, tail = (f'#line 1 "{quoted}"\n', "\n".join(["", *more, ""]))
        file.write_bytes(head.encode("utf-8", "surrogateescape") + source.data + tail.encode())
        kept = Path(folder) / "kept"
        kept.mkdir()
        keep = [f"--{form}", f"-arch={arch}", "--keep", "--keep-dir", str(kept)]
        command = [program, *keep, *request.words, str(file)]
        done = subprocess.run(
            [*command, "-o", str(target)],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        log = (done.stderr + done.stdout).strip().replace(str(file), source.name)
        if done.returncode != 0 or not target.exists():
            message = f"{source.name} cannot be compiled for {arch} by nvcc:\n{log}"
            raise CompileError(Diagnostic(message, hint=hint_for_headers(log)))
        image = target.read_bytes()
        # nvcc makes a cubin from PTX, which `--keep` leaves in the folder.
        texts = [target] if form == "ptx" else sorted(kept.glob("*.ptx"))[:1]
        ptx = "".join(each.read_text(errors="replace") for each in texts)
        return image, log, ptx
