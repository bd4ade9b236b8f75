"""The support code as assembly text, to stand in every object as it is.

LLVM would need longer for the support code than for a wrapper, so it is compiled once for a
triple, for the baseline CPU, and goes into objects as module-level assembly, which costs a
twentieth.  Its symbols are local to the object.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

import llvmlite.binding as llvm

from ferrule.compiler import targets
from ferrule.compiler.checker.machine import define_check
from ferrule.compiler.messages.support import define_support
from ferrule.runtime.llvm.emitter import Emitter

_DROPPED: Final = re.compile(
    r'^\s*\.(globl|file|ident|addrsig|addrsig_sym|section\s+"?\.note\.GNU-stack)\b.*\n', re.M
)
_LABEL: Final = re.compile(r"\.L(?=\w)")


@cache
def support_text() -> str:
    """The support code as an LLVM module.  Pure: it depends on nothing."""
    emitter = Emitter("ferrule.support")
    define_support(emitter)
    define_check(emitter)
    return emitter.text()


@cache
def support_assembly(triple: str) -> str:
    """Assembly that defines the functions of `support`.  Pure: it depends on the triple alone."""
    context = llvm.create_context()
    module = llvm.parse_assembly(support_text(), context)
    module.triple = triple
    module.verify()
    text = targets.machine(targets.baseline(triple)).emit_assembly(module)
    # Labels that LLVM gives to the object's own code must not meet these.
    return _LABEL.sub(".Lferrule_", _DROPPED.sub("", text))


def as_module_assembly(text: str) -> str:
    """Assembly as the LLVM directives that put it into a module."""
    escaped = (_escape(line) for line in text.splitlines() if line.strip())
    return "".join(f'module asm "{line}"\n' for line in escaped)


def _escape(line: str) -> str:
    return line.replace("\\", "\\5C").replace('"', "\\22").replace("\t", " ")
