"""Support code: cold functions, the same in every object that calls one of them.

LLVM would need longer for the support code than for a wrapper, so it is compiled once for a triple,
for the baseline CPU, and packages of ferrule have it as files (`shipped`).  An object gets only the
functions that it can reach, as module-level assembly that copies their bytes.  Their symbols are
local to the object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from functools import cache, lru_cache
from typing import Any, Final

import llvmlite.binding as llvm
from llvmlite import ir

from ferrule.compiler import targets
from ferrule.compiler.checker.format import RARE as RARE_ROWS
from ferrule.compiler.checker.format import TABLE, Op
from ferrule.compiler.checker.reports import shown_by
from ferrule.compiler.cuda.launcher.entries import PROTOTYPES as CUDA_PROTOTYPES
from ferrule.compiler.messages.table import HANDLED, PARTS
from ferrule.compiler.messages.table import RARE as RARE_PARTS
from ferrule.compiler.support import entries
from ferrule.compiler.support.dispatch import needed_by, part_symbol
from ferrule.compiler.support.placement import Wanted, as_data
from ferrule.compiler.support.precompiled import Precompiled, joined, read
from ferrule.compiler.support.shipped import shipped
from ferrule.compiler.threads.state import ENTRIES as THREADS_ENTRIES
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.passes import passes
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Support:
    """One part of support code: its entry points, and the function that emits it.

    The code of `rare` is compiled only when an object needs it.  `tables` emits the tables that
    refer to both.
    """

    name: str
    entries: tuple[str, ...]
    define: Callable[[Emitter], None]
    rare: Callable[[Emitter], None] | None = None
    tables: Callable[[Emitter], None] | None = None


class Half(Enum):
    """A half of a part of support code in one module, each function in a section of its own."""

    COMMON = auto()
    RARE = auto()


# What emits most of the code is imported where it is emitted: with shipped code it never is.


def _define_checks(emitter: Emitter) -> None:
    from ferrule.compiler.checker.machine import define_check
    from ferrule.compiler.messages.support import define_support

    define_support(emitter)
    define_check(emitter)


def _define_rare(emitter: Emitter) -> None:
    from ferrule.compiler.checker.machine import define_rare_rows
    from ferrule.compiler.messages.segments import define_rare_parts

    define_rare_parts(emitter)
    define_rare_rows(emitter)


def _define_tables(emitter: Emitter) -> None:
    from ferrule.compiler.checker.machine import define_row_table
    from ferrule.compiler.messages.segments import define_part_table

    define_part_table(emitter)
    define_row_table(emitter)


def _define_cuda(emitter: Emitter) -> None:
    from ferrule.compiler.cuda.launcher.support import define_cuda

    define_cuda(emitter)


def _define_threads(emitter: Emitter) -> None:
    from ferrule.compiler.threads.running import define_threads

    define_threads(emitter)


def _define_allocation(emitter: Emitter) -> None:
    from ferrule.compiler.support.allocation import define_allocation

    define_allocation(emitter)


def _define_calling(emitter: Emitter) -> None:
    from ferrule.compiler.support.calling import define_calling

    define_calling(emitter)


def _define_refusals(emitter: Emitter) -> None:
    from ferrule.compiler.support.refusals import define_refusals

    define_refusals(emitter)


def _define_objects(emitter: Emitter) -> None:
    from ferrule.compiler.support.objects import define_objects

    define_objects(emitter)


def _define_values(emitter: Emitter) -> None:
    from ferrule.compiler.support.values import define_values

    define_values(emitter)


CHECKS: Final = Support(
    "checks", ("ferrule_check", "ferrule_raise"), _define_checks, _define_rare, _define_tables
)
"""The functions that wrappers call."""

_RARE: Final = needed_by(RARE_ROWS, RARE_PARTS)

CUDA: Final = Support("cuda", tuple(CUDA_PROTOTYPES), _define_cuda)
"""The functions for bodies that launch kernels on NVIDIA GPUs."""

ALLOCATION: Final = Support("allocation", entries.ALLOCATION, _define_allocation)
"""The functions for bodies that allocate tensors."""

CALLING: Final = Support("calling", entries.CALLING, _define_calling)
"""The functions for bodies that call tvm-ffi functions."""

REFUSALS: Final = Support("refusals", entries.REFUSALS, _define_refusals)
"""The functions for wrappers of overloads."""

OBJECTS: Final = Support("objects", entries.OBJECTS, _define_objects)
"""The functions for bodies that read containers, and fields and methods of objects."""

THREADS: Final = Support("threads", THREADS_ENTRIES, _define_threads)
"""The functions for bodies that run kernels on the CPU."""

VALUES: Final = Support("values", entries.VALUES, _define_values)
"""The functions for wrappers of functions with a result."""

_LABELS: Final = "support"

_DROPPED: Final = re.compile(
    r'^\s*\.(globl|file|ident|addrsig|addrsig_sym|section\s+"?\.note\.GNU-stack)\b.*\n', re.M
)
_LABEL: Final = re.compile(r"(?<![\w.$])(\.L(?=[\w.$])|L(?=(?:BB|CPI|JTI)\d|_\.)|l(?=_\.))")
"""The prefixes of labels that LLVM generates, on ELF and on Mach-O."""


@cache
def support_text(support: Support, half: Half | None = None) -> str:
    """The LLVM module, of all the code or of a half."""
    emitter = Emitter(f"ferrule.{support.name}")
    if half is not Half.RARE:
        support.define(emitter)
    if half is not Half.COMMON and support.rare is not None:
        support.rare(emitter)
    if half is not Half.RARE and support.tables is not None:
        support.tables(emitter)
    for function in emitter.module.functions:
        # Else LLVM makes calls of bcmp, which objects must not need.
        set.add(function.attributes, '"no-builtins"')
        # A jump table would be a constant that several functions share.
        set.add(function.attributes, '"no-jump-tables"="true"')
    if half is not None:
        for symbol in emitter.module.global_values:
            _set_apart(symbol)
    return emitter.text()


def _set_apart(symbol: ir.GlobalValue) -> None:
    match symbol:
        case ir.Function(is_declaration=False):
            symbol.section = f".text.{symbol.name}"
        case ir.GlobalVariable(global_constant=True):
            symbol.section = f".rodata.{symbol.name}"


@dataclass(frozen=True, slots=True)
class Need:
    """The parts of support code that an object needs.

    `symbols` are the entries that it calls, None for all; for `CHECKS`, whose entries every object
    has, they are the handlers.
    """

    support: Support
    symbols: frozenset[str] | None = None

    @property
    def wanted(self) -> frozenset[str]:
        """The symbols of entries and handlers."""
        if self.support is not CHECKS:
            return frozenset(self.support.entries) if self.symbols is None else self.symbols
        handlers = needed_by(Op, HANDLED) if self.symbols is None else self.symbols
        return handlers.union(self.support.entries)


@lru_cache(maxsize=256)
def support_assembly(needs: tuple[Need, ...], triple: str) -> str:
    """LLVM directives with the assembly of all the code, for readers."""
    return "".join(as_module_assembly(_assembly(each.support, triple)) for each in needs)


@lru_cache(maxsize=256)
def support_data(needs: tuple[Need, ...], triple: str) -> str:
    """LLVM directives with the bytes of the code; objects contain these."""
    symbols = frozenset[str]().union(*(each.wanted for each in needs))
    supports = tuple(each.support for each in needs)
    code = _precompiled(supports, triple, not symbols.isdisjoint(_RARE))
    if code is None:
        return support_assembly(needs, triple)
    entries = [entry for each in supports for entry in each.entries]
    wanted = Wanted(symbols, _implied, (TABLE, PARTS))
    return as_module_assembly(as_data(code, _LABELS, entries, wanted))


def _implied(symbol: str) -> Iterable[str]:
    """The handlers that a message needs: in messages they are only numbers, not references."""
    return map(part_symbol, shown_by().get(symbol, ()))


@lru_cache(maxsize=64)
def _precompiled(supports: tuple[Support, ...], triple: str, with_rare: bool) -> Precompiled | None:
    """The code of all parts, with the rare halves or without."""
    halves = [(each, Half.COMMON) for each in supports]
    halves += [(each, Half.RARE) for each in supports if with_rare and each.rare is not None]
    found = None
    for support, half in halves:
        code = precompiled(support, triple, half)
        if code is None:
            return None
        found = code if found is None else joined(found, code)
    return found


@cache
def precompiled(support: Support, triple: str, half: Half) -> Precompiled | None:
    """The code of one module, taken apart; None if its format is not supported."""
    if "-apple-" in triple:
        return None
    code = shipped(support.name, half.name.lower(), triple)
    return read(emitted(support, triple, half) if code is None else code)


def emitted(support: Support, triple: str, half: Half) -> bytes:
    """The object file of one module, from its sources."""
    with _parsed(support, triple, half) as (machine, module):
        return bytes(machine.emit_object(module))


@lru_cache(maxsize=32)
def _assembly(support: Support, triple: str) -> str:
    with _parsed(support, triple) as (machine, module):
        text = str(machine.emit_assembly(module))
    # Make them different from the labels that LLVM gives to the object's own code.
    label = rf"\g<1>ferrule_{support.name}_"
    return _LABEL.sub(label, _DROPPED.sub("", text))


@contextmanager
def _parsed(support: Support, triple: str, half: Half | None = None) -> Iterator[tuple[Any, Any]]:
    machine = targets.machine(targets.baseline(triple))
    with llvm.parse_assembly(support_text(support, half), llvm.create_context()) as module:
        module.triple, module.data_layout = triple, str(machine.target_data)
        module.verify()
        _tidy(module, machine)
        yield machine, module


def _tidy(module: Any, machine: Any) -> None:
    """Run three cheap passes that make the code smaller without slowing its compilation."""
    with passes(module, machine) as manager:
        manager.add_sroa_pass()
        manager.add_instruction_combine_pass()
        manager.add_simplify_cfg_pass()


def as_module_assembly(text: str) -> str:
    """LLVM directives with this assembly."""
    escaped = (_escape(line) for line in text.splitlines() if line.strip())
    return "".join(f'module asm "{line}"\n' for line in escaped)


def _escape(line: str) -> str:
    return line.replace("\\", "\\5C").replace('"', "\\22").replace("\t", " ")
