"""`LoadedOrigin`: the parts of its compilation that a function loaded from a file still has.

A file has machine code, and the images of its kernels for a GPU; the kernel IR and LLVM's IR are
not in it. Machine code is shown as a disassembler of this machine writes it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.artefacts import ExportForm, KernelInfo, ObjectCode, Stage
from ferrule.runtime.binaries.metadata import DeviceImage
from ferrule.runtime.binaries.objectfile import read_object
from ferrule.runtime.errors import NoKernelsError, StageError
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.runtime.binaries.images import FoundImage

_DISASSEMBLERS: Final = ("llvm-objdump", "objdump")

_SECTION: Final = "Disassembly of section "
_BLOCK: Final = re.compile(r"^[0-9a-f]+ <.*>:\n(?:.+\n?)*", re.MULTILINE)
_LINE: Final = re.compile(r"^ *([0-9a-f]+)[: ]", re.MULTILINE)
_PLACE: Final = re.compile(r"\b(?:0x)?([0-9a-f]+) <")
"""How a disassembler writes the code behind a symbol, the address of an instruction, and an address
that an instruction names."""


@dataclass(frozen=True, slots=True)
class LoadedOrigin:
    """The `Origin` of a loaded function.

    `file` names the file in messages, `content` are its bytes. `data` are the bytes of the object
    with the function, None for a library. `images` describes the function's kernels for a GPU.
    `symbol` is its name in a library, which has the code of others too.
    """

    file: str
    content: bytes = field(repr=False)
    data: bytes | None = field(repr=False)
    images: tuple[DeviceImage, ...] = ()
    symbol: str = ""

    @property
    def where(self) -> str:
        """What `Function.origin` says."""
        return "loaded"

    def emit(self, name: str, cpu: str, triple: str) -> ObjectCode:
        """StageError: there is nothing to make another object from."""
        self._refuse(".o")

    def export(self, name: str, form: ExportForm, system_lib: str | None = None) -> bytes:
        """The unchanged bytes of the loaded object, only under the function's own name."""
        if self.data is None or form != ".o" or system_lib is not None:
            raise StageError(form, (".o",) if self.data else (), self._why())
        if SYMBOL_PREFIX + name not in read_object(self.data).defined:
            raise StageError(form, (".o",), f"{self._why()} under another name")
        return self.data

    def text(self, stage: Stage) -> str:
        """The PTX in the file, or its machine code as assembly; StageError for other stages."""
        if stage == "ptx":
            return "\n".join(self.ptx().values())
        if stage == "asm":
            whole = disassembled(self.content if self.data is None else self.data, self.file)
            return function_of(whole, self.symbol) if self.data is None else whole
        self._refuse(stage)

    def ptx(self) -> Mapping[str, str]:
        """The PTX in the file by architecture; StageError if there is none."""
        found = {image.arch: _text(image) for image in self.found() if image.kind == "ptx"}
        if not found and not self.images:
            why = f"{self._why()}, and has no kernels for a GPU"
            raise NoKernelsError("ptx", ("asm",), why)
        if not found:
            self._refuse("ptx", self._why_no_ptx())
        return found

    def found(self) -> tuple[FoundImage, ...]:
        """The images of the function's kernels that are in the file."""
        from ferrule.runtime.binaries.images import find_images

        return tuple(find_images(self.content if self.data is None else self.data, self.images))

    def kernel_info(self) -> Mapping[str, Mapping[str, KernelInfo]]:
        """StageError: the resources are known where the kernels are compiled."""
        self._refuse("kernel_info")

    def _refuse(self, stage: str, why: str = "") -> NoReturn:
        available = ("ptx", "asm") if any(i.kind == "ptx" for i in self.images) else ("asm",)
        raise StageError(stage, available, f"{self._why()}{why}")

    def _why(self) -> str:
        return f"the function was loaded from {self.file}"

    def _why_no_ptx(self) -> str:
        kinds = ", ".join(f"{image.arch} ({image.kind})" for image in self.images)
        if any(image.kind == "ptx" for image in self.images):
            return f", which a version of ferrule wrote that does not say where {kinds} are"
        return f", whose kernels are {kinds} alone"


def disassembled(data: bytes, file: str) -> str:
    """The machine code of a file as assembly.  StageError without a disassembler that knows it."""
    tools = list(filter(None, map(shutil.which, _DISASSEMBLERS)))
    if not tools:
        names = " or ".join(_DISASSEMBLERS)
        raise StageError("asm", (), f"{file} is machine code, which {names} shows: install one")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "code"
        copy.write_bytes(data)
        for tool in tools:
            command = [tool, "--disassemble", "--no-show-raw-insn", str(copy)]
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False
            )
            if done.returncode == 0:
                return done.stdout.replace(str(copy), file).lstrip()
    said = done.stderr.strip().replace(str(copy), file)
    raise StageError("asm", (), f"{' and '.join(tools)} cannot read {file}: {said}")


def function_of(assembly: str, symbol: str) -> str:
    """The part of a disassembled library that this function executes; all of it for an unknown one.

    That is its own code, and all code of the same section that this refers to.
    """
    head, *sections = assembly.split(_SECTION)
    section = next((each for each in sections if f" <{symbol}>:\n" in each), None)
    if section is None:
        return assembly
    blocks = {int(block.split(" ", 1)[0], 16): block for block in _BLOCK.findall(section)}
    start = next(at for at, block in blocks.items() if f" <{symbol}>:\n" in block)
    kept = [blocks[at].rstrip() for at in sorted(_reached(blocks, start))]
    return "\n\n".join([f"{head}{_SECTION}{section.splitlines()[0]}", *kept]) + "\n"


def _reached(blocks: Mapping[int, str], start: int) -> set[int]:
    """The blocks, by address, that this block refers to, and those that they refer to."""
    starts, waiting, found = sorted(blocks), [start], set[int]()
    # Behind the last instruction is no code of this section, whatever an operand names there.
    end = max(int(at, 16) for at in _LINE.findall(blocks[starts[-1]]))
    while waiting:
        at = waiting.pop()
        if at not in found:
            found.add(at)
            places = (int(place, 16) for place in _PLACE.findall(blocks[at]))
            inside = (place for place in places if starts[0] <= place <= end)
            # An address inside of a function means the block that starts before it.
            waiting += (starts[bisect_right(starts, place) - 1] for place in inside)
    return found


def _text(image: FoundImage) -> str:
    # The driver reads PTX up to a zero byte, which is in the file.
    return image.data.rstrip(b"\0").decode("utf-8", "replace")
