"""LLVM's passes over a module: what runs, and that nothing of them stays behind."""

from __future__ import annotations

import gc

import pytest
from llvmlite import binding

from ferrule.runtime.linking.engine import host_triple, initialize_llvm
from ferrule.runtime.llvm.passes import passes, run_pipeline

TEXT = """
define internal i32 @unused(i32 %x) {
  ret i32 %x
}
define i32 @f(i32 %x) {
  %y = add i32 %x, 0
  ret i32 %y
}
"""


def parsed() -> tuple[object, object]:
    initialize_llvm()
    machine = binding.Target.from_triple(host_triple()).create_target_machine(opt=2)
    return binding.parse_assembly(TEXT, binding.create_context()), machine


def test_passes_run_when_the_block_ends() -> None:
    module, machine = parsed()
    with passes(module, machine) as manager:
        manager.add_global_dead_code_eliminate_pass()
        assert "@unused" in str(module)
    assert "@unused" not in str(module)
    assert "add i32" in str(module)


def test_nothing_stays_of_a_pipeline() -> None:
    """Freed by the garbage collector alone it would be 60 KiB each: llvmlite frees no manager."""
    module, machine = parsed()
    options = binding.create_pipeline_tuning_options()
    for _ in range(20):
        run_pipeline(module, machine, options)
    gc.collect()
    before = resident()
    for _ in range(150):
        run_pipeline(module, machine, options)
    assert resident() - before < 3000
    assert "add i32" not in str(module)


def resident() -> int:
    """KiB of memory that this process has."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            (line,) = (line for line in status if line.startswith("VmRSS"))
    except OSError:
        pytest.skip("no /proc to read the memory of a process from")
    return int(line.split()[1])
