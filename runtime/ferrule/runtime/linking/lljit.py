"""LLVM's linker, for objects that ferrule's own does not know (`direct`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ferrule.runtime.binaries.elf import Machine, ObjectFileError
from ferrule.runtime.linking.relaxing import without_relaxing


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
    lljit = binding.create_lljit_compiler(_linking_machine(), use_jit_link=True)
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
def _linking_machine() -> Any:
    """LLVM's target machine for all linkers: they compile nothing, but each would make its own."""
    from llvmlite import binding

    from ferrule.runtime.linking.engine import host_baseline_cpu, host_triple, initialize_llvm

    initialize_llvm()
    return binding.Target.from_triple(host_triple()).create_target_machine(
        cpu=host_baseline_cpu(), reloc="pic", codemodel="default"
    )
