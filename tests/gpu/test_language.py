"""The tests of the language and of the examples, on a GPU, real or emulated.

Each file runs in a process of its own, with the plugin tests/support/on_gpu.py: an error in a
kernel loses the context of the device for the rest of the process.  Without a GPU,

    PYTHONPATH=compiler:runtime:specs python -m pytest tests/gpu --compile-only

compiles all of it for sm_90a.  With FERRULE_GPU=emulated:sm_90a in the environment it runs on a GPU
that the processor emulates.
"""

from __future__ import annotations

import pytest
from gpu_runs import PROGRAMS, done


@pytest.mark.needs_cuda
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_mean_the_same_on_a_gpu(name: str) -> None:
    found = done([name], "run")
    if not found["functions"] and found["too_new"]:
        pytest.skip("its instructions are those of newer GPUs")
    assert found["functions"] and found["calls"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compile_for_a_gpu(name: str, request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--compile-only", default=False):
        pytest.skip("without --compile-only")
    assert done([name], "compile")["functions"]


def test_what_needs_a_gpu_has_programs_to_run_there() -> None:
    assert {"language/test_programs.py", "examples/test_examples.py"} <= set(PROGRAMS)
    assert done(["language/test_hints.py"], "compile")["functions"]
