"""LLVM's passes over a module, and nothing of them left behind.

llvmlite up to 0.50 never frees a pass manager: of its two base classes the one whose `_dispose`
does nothing comes first.  That is 30 KiB for each pipeline that is made, and as much again for one
that has run.  A later llvmlite that frees it itself finds it freed, and does not free it again.
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
