"""LLVM text to addresses in this process. Helpers are compiled once for all kernels."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

from llvmlite import binding

from ferrule.emulator.instructions import helpers
from ferrule.emulator.machine import scheduler
from ferrule.emulator.native import shared
from ferrule.emulator.native.values import SHARED_PREFIX
from ferrule.runtime.forks import ForkLock

_LONG: Final = 500_000
"""Letters of a text for which combining instructions takes more time than it gives back: it looks
at all users of a place in memory again whenever one of them changes."""
_LOCK: Final = ForkLock()
_HELPERS: Final[dict[str, int]] = {}
_SHARED: Final[dict[str, int]] = {}
_KEPT: Final[list[Any]] = []

MATHS: Final = (
    "sin", "cos", "exp2", "log2", "tanh", "fmaf", "fma", "memset", "memcpy",
    "__truncdfhf2", "__truncsfhf2", "__extendhfsf2",
)  # fmt: skip
"""Functions of C that generated code may call."""


@cache
def _machine(level: int = 1) -> Any:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    features = binding.get_host_cpu_features().flatten()
    return target.create_target_machine(
        cpu=binding.get_host_cpu_name(), features=features, opt=min(level, 1), jit=True, reloc="pic"
    )


@cache
def _symbols() -> Mapping[str, int]:
    found = {}
    libraries = [ctypes.CDLL(None)]
    maths = ctypes.util.find_library("m")
    if maths:
        libraries.append(ctypes.CDLL(maths))
    for name in MATHS:
        for library in libraries:
            if hasattr(library, name):
                found[name] = ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
                break
    return found


class Code:
    """Linked code; its memory goes with it."""

    def __init__(self, tracker: Any, addresses: Mapping[str, int]) -> None:
        self._tracker = tracker
        self.addresses = addresses


def compiled(text: str, names: Iterable[str], symbols: Mapping[str, int], level: int = 1) -> Code:
    """The addresses of functions of an LLVM text; level 0 compiles quickly, 2 for fast code."""
    with _LOCK:
        module = binding.parse_assembly(text)
        machine = _machine(level)
        _optimise(module, machine, level, len(text) < _LONG)
        data = machine.emit_object(module)
        lljit = binding.create_lljit_compiler(_linker(), use_jit_link=True)
        builder = binding.JITLibraryBuilder().add_object_img(data)
        for name, address in {**_symbols(), **symbols}.items():
            builder.import_symbol(name, address)
        names = list(names)
        for name in names:
            builder.export_symbol(name)
        tracker = builder.link(lljit, "emulated")
        return Code((tracker, lljit), {name: int(tracker[name]) for name in names})


def _linker() -> Any:
    target = binding.Target.from_default_triple()
    return target.create_target_machine(
        cpu=binding.get_host_cpu_name(), jit=True, reloc="pic", codemodel="small"
    )


def _optimise(module: Any, machine: Any, level: int, small: bool) -> None:
    options = binding.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
    builder = binding.create_pass_builder(machine, options)
    passes = binding.create_new_module_pass_manager()
    if level == 0:
        return
    if level > 1:
        builder.getModulePassManager().run(module, builder)
        return
    passes.add_sroa_pass()
    if small:
        passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, builder)


def helper_addresses(names: Iterable[str]) -> dict[str, int]:
    """Where the helpers of these names are; those that are new are compiled together."""
    with _LOCK:
        wanted = sorted(names)
        new = [name for name in wanted if name not in _HELPERS]
        if new:
            text = _joined(new)
            code = compiled(text, new, _shared_addresses(text), 2)
            _KEPT.append(code)
            _HELPERS.update(code.addresses)
        return {name: _HELPERS[name] for name in wanted}


def _shared_addresses(text: str) -> dict[str, int]:
    """Where the shared functions are that a text declares; those that are new are compiled."""
    names = shared.declared(text)
    for name in names:
        if name not in _SHARED:
            group = shared.group_of(name)
            own = shared.text(group)
            exported = [f"{SHARED_PREFIX}.{each}" for each in shared.GROUPS[group].names]
            code = compiled(own, exported, _shared_addresses(own), 2)
            _KEPT.append(code)
            _SHARED.update(code.addresses)
    return {name: _SHARED[name] for name in names}


def _joined(names: list[str]) -> str:
    """Several helpers as one module: what they declare, once."""
    lines: dict[str, None] = {}
    bodies = []
    for name in names:
        for line in helpers.text(name).splitlines():
            if line.startswith("declare"):
                lines[line] = None
            else:
                bodies.append(line)
    declared = [*helpers.DECLARED.splitlines(), *lines]
    return "\n".join([*dict.fromkeys(declared), *bodies])


@cache
def scheduler_code() -> Code:
    """`prepare` and `run`."""
    return compiled(scheduler.TEXT, ("prepare", "run"), {}, 2)
