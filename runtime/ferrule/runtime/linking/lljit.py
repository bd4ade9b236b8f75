"""LLVM's linker, for objects that ferrule's own does not know (`direct`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

from ferrule.runtime.binaries import elf
from ferrule.runtime.binaries.elf import Machine, ObjectFileError
from ferrule.runtime.host import host_baseline_cpu, host_triple, initialize_llvm


class Linked:
    """An object that an LLVM linker of its own has put into this process."""

    __slots__ = ("_lljit", "_tracker", "addresses")

    def __init__(self, lljit: Any, tracker: Any, names: tuple[str, ...]) -> None:
        self._lljit = lljit
        self._tracker = tracker
        self.addresses: Mapping[str, int] = {name: int(tracker[name]) for name in names}

    def free(self) -> None:
        """Take the object out of the process; nothing may run or use it any more."""
        self._tracker = self._lljit = None


def link(
    data: bytes, machine: Machine, imports: Mapping[str, int], names: tuple[str, ...]
) -> Linked:
    """Link an object whose undefined symbols have the addresses `imports`.

    Returns it with the addresses of these names.  ObjectFileError where LLVM cannot link it.
    """
    from llvmlite import binding

    # LLVM's other linker maps each section separately.  In a process with gigabytes of libraries
    # two sections can be too far apart for a relocation between them, and LLVM ends the process.
    lljit = binding.create_lljit_compiler(linking_machine(), use_jit_link=True)
    data = without_relaxing(data, machine, imports.values())
    library = binding.JITLibraryBuilder().add_object_img(data)
    for name, address in imports.items():
        library.import_symbol(name, address)
    for name in names:
        library.export_symbol(name)
    try:
        return Linked(lljit, library.link(lljit, "object"), names)
    except RuntimeError as error:
        raise ObjectFileError(f"LLVM cannot link the object: {error}") from error


@cache
def linking_machine() -> Any:
    """LLVM's target machine for all linkers: they compile nothing, but each would make its own."""
    from llvmlite import binding

    initialize_llvm()
    return binding.Target.from_triple(host_triple()).create_target_machine(
        cpu=host_baseline_cpu(), reloc="pic", codemodel="default"
    )


_SHORT: Final = 1 << 32
"""Addresses below this limit fit into 32 bits."""

# R_X86_64_GOTPCREL.
_GOTPCREL: Final = 9
_RELAXED: Final = (41, 42)
"""R_X86_64_GOTPCRELX and R_X86_64_REX_GOTPCRELX: the same, but a linker may relax the code."""


def without_relaxing(data: bytes, machine: elf.Machine, addresses: Iterable[int]) -> bytes:
    """The object, prepared for symbols at these addresses; unchanged if no address is low.

    `read_object` has checked the bytes.
    """
    if machine is not elf.Machine.X86_64 or all(address >= _SHORT for address in addresses):
        return data
    changed = bytearray(data)
    for offset in elf.read_header(data, elf.FileType.OBJECT).sections:
        section = elf.read_section(data, offset)
        if section.kind == elf.SHT_RELA:
            _change(changed, data, section)
    return bytes(changed)


def _change(changed: bytearray, data: bytes, section: elf.Section) -> None:
    for i, (at, info, addend) in enumerate(elf.entries(elf.RELOCATION, data, section)):
        symbol, kind = info >> 32, info & 0xFFFFFFFF
        if kind in _RELAXED:
            place = section.offset + i * elf.RELOCATION.size
            elf.RELOCATION.pack_into(changed, place, at, symbol << 32 | _GOTPCREL, addend)
