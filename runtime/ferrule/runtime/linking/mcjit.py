"""LLVM's MCJIT as the linker, for debuggers: it registers what it links by gdb's interface for JIT
compilers, so that gdb shows functions, lines and frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ferrule.runtime.binaries.elf import Machine, ObjectFileError
from ferrule.runtime.linking.lljit import linking_machine, without_relaxing


class Linked:
    """An object that MCJIT has put into this process."""

    __slots__ = ("_engine", "addresses")

    def __init__(self, engine: Any, names: tuple[str, ...]) -> None:
        self._engine = engine
        self.addresses: Mapping[str, int] = {
            name: int(engine.get_global_value_address(name)) for name in names
        }

    def free(self) -> None:
        """Take the object out of the process; nothing may run or use it any more."""
        self._engine.close()


def link(
    data: bytes, machine: Machine, imports: Mapping[str, int], names: tuple[str, ...]
) -> Linked:
    """Link an object whose undefined symbols have the addresses `imports`; see `lljit.link`."""
    from llvmlite import binding

    module = binding.parse_assembly("", context=binding.create_context())
    engine = binding.create_mcjit_compiler(module, linking_machine())
    data = without_relaxing(data, machine, imports.values())
    # MCJIT asks the process for symbols, and LLVM's table of them first; it asks here, at once.
    for name, address in imports.items():
        binding.add_symbol(name, address)
    try:
        engine.add_object_file(binding.ObjectFileRef.from_data(data))
        engine.finalize_object()
        linked = Linked(engine, names)
    except RuntimeError as error:
        raise ObjectFileError(f"LLVM cannot link the object: {error}") from error
    if missing := [name for name, address in linked.addresses.items() if not address]:
        raise ObjectFileError(f"LLVM has linked the object without {missing[0]}")
    return linked
