"""Support code: cold functions, the same in every object that calls one of them.

LLVM would need longer for the support code than for a wrapper, so it is compiled once for a
triple, for the baseline CPU, and goes into objects as module-level assembly that only copies its
bytes.  Its symbols are local to the object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import llvmlite.binding as llvm

from ferrule.compiler import targets
from ferrule.compiler.allocation import ENTRIES as ALLOCATION_ENTRIES
from ferrule.compiler.allocation import define_allocation
from ferrule.compiler.calling import ENTRIES as CALLING_ENTRIES
from ferrule.compiler.calling import define_calling
from ferrule.compiler.checker.machine import define_check
from ferrule.compiler.cuda.support import ENTRIES as CUDA_ENTRIES
from ferrule.compiler.cuda.support import define_cuda
from ferrule.compiler.messages.support import define_support
from ferrule.compiler.precompiled import as_data
from ferrule.compiler.values import ENTRIES as VALUE_ENTRIES
from ferrule.compiler.values import define_values
from ferrule.runtime.llvm.emitter import Emitter


@dataclass(frozen=True, slots=True)
class Support:
    """One piece of support code: what of it is called from outside, and what emits it."""

    name: str
    entries: tuple[str, ...]
    define: Callable[[Emitter], None]


def _define_checks(emitter: Emitter) -> None:
    define_support(emitter)
    define_check(emitter)


CHECKS: Final = Support("checks", ("ferrule_check", "ferrule_raise"), _define_checks)
"""What wrappers call."""

CUDA: Final = Support("cuda", CUDA_ENTRIES, define_cuda)
"""What bodies call that launch kernels on NVIDIA GPUs."""

ALLOCATION: Final = Support("allocation", ALLOCATION_ENTRIES, define_allocation)
"""What bodies call that make tensors."""

CALLING: Final = Support("calling", CALLING_ENTRIES, define_calling)
"""What bodies call that call functions of tvm-ffi."""

VALUES: Final = Support("values", VALUE_ENTRIES, define_values)
"""What wrappers of functions call that return something."""

_DROPPED: Final = re.compile(
    r'^\s*\.(globl|file|ident|addrsig|addrsig_sym|section\s+"?\.note\.GNU-stack)\b.*\n', re.M
)
_LABEL: Final = re.compile(r"(?<![\w.$])\.L(?=[\w.$])")


@cache
def support_text(support: Support) -> str:
    """The LLVM module."""
    emitter = Emitter(f"ferrule.{support.name}")
    support.define(emitter)
    for function in emitter.module.functions:
        # Else LLVM makes calls of bcmp, which is no function that an object may need.
        set.add(function.attributes, '"no-builtins"')
    return emitter.text()


@cache
def support_assembly(support: Support, triple: str) -> str:
    """LLVM directives with the assembly of the code, to read."""
    return _as_module_assembly(_assembly(support, triple))


@cache
def support_data(support: Support, triple: str) -> str:
    """LLVM directives with the bytes of the code, which is what objects get."""
    with _parsed(support, triple) as (machine, module):
        code = bytes(machine.emit_object(module))
    text = as_data(code, support.entries, support.name)
    return _as_module_assembly(_assembly(support, triple) if text is None else text)


def _assembly(support: Support, triple: str) -> str:
    with _parsed(support, triple) as (machine, module):
        text = str(machine.emit_assembly(module))
    # Labels that LLVM gives to the object's own code must not meet these.
    label = f".Lferrule_{support.name}_"
    return _LABEL.sub(label, _DROPPED.sub("", text))


@contextmanager
def _parsed(support: Support, triple: str) -> Iterator[tuple[Any, Any]]:
    machine = targets.machine(targets.baseline(triple))
    with llvm.parse_assembly(support_text(support), llvm.create_context()) as module:
        module.triple, module.data_layout = triple, str(machine.target_data)
        module.verify()
        _tidy(module, machine)
        yield machine, module


def _tidy(module: Any, machine: Any) -> None:
    """Three cheap passes that make the code smaller, and its compilation no slower."""
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, builder)


def _as_module_assembly(text: str) -> str:
    escaped = (_escape(line) for line in text.splitlines() if line.strip())
    return "".join(f'module asm "{line}"\n' for line in escaped)


def _escape(line: str) -> str:
    return line.replace("\\", "\\5C").replace('"', "\\22").replace("\t", " ")
