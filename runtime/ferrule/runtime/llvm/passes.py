"""Runs LLVM's passes over a module, without a memory leak.

llvmlite up to 0.50 never frees a pass manager: it has two base classes, and the `_dispose` of the
first one does nothing.  This loses 30 KiB for each pipeline, and again as much for each run.  This
module frees the manager; a later llvmlite that frees it too does not free it twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import binding


def run_pipeline(module: Any, machine: Any, options: Any) -> None:
    """LLVM's default pipeline, with these tuning options."""
    with binding.create_pass_builder(machine, options) as builder:
        with _freed(builder.getModulePassManager()) as manager:
            manager.run(module, builder)


@contextmanager
def passes(module: Any, machine: Any) -> Iterator[Any]:
    """A pass manager to add passes to, which run when the block ends."""
    options = binding.create_pipeline_tuning_options()
    with binding.create_pass_builder(machine, options) as builder:
        with _freed(binding.create_new_module_pass_manager()) as manager:
            yield manager
            manager.run(module, builder)


@contextmanager
def _freed(manager: Any) -> Iterator[Any]:
    try:
        yield manager
    finally:
        binding.NewPassManager._dispose(manager)
        manager.detach()


def link_in(module: Any, other: Any) -> None:
    """Move all of `other` into `module`, and free `other`.  RuntimeError if they conflict.

    A signal handler may raise directly after LLVM's function, as Ctrl-C does.  Then llvmlite would
    not know that LLVM has freed `other`, and would free it again.  So `other` is marked as owned by
    something else first, and llvmlite never frees it.  If LLVM did not free it, its context does.
    """
    other._owned = True
    module.link_in(other)
