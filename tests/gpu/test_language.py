"""The tests of the language and of the examples, on a GPU, real or emulated.

Each file runs in a process of its own, with the plugin tests/support/on_gpu.py: an error in a
kernel loses the context of the device for the rest of the process.  Without a GPU,

    PYTHONPATH=compiler:runtime:specs python -m pytest tests/gpu --compile-only

compiles all of it for sm_90a.  With FERRULE_GPU=emulated:sm_90a in the environment it runs on a GPU
that the processor emulates.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ALSO = (
    "examples/test_cooperative.py",
    "examples/test_examples.py",
    "language/test_random_programs.py",
    "language/test_run.py",
)
LEFT_OUT = {
    "cpu/test_interrupts.py": "signals interrupt loops on the CPU alone",
    "language/test_arch_clusters.py": "on a CPU each block is a cluster of its own",
    "language/test_reference.py": "its one program fails",
    "language/test_threads_wrong.py": "every program fails",
}
NOT_HERE = (
    "not test_every_way_to_call"  # looks at the function itself
    " and not test_calling_a_jit_function"  # the same
    " and not test_a_sum_of_floats_is_rounded"  # tensor cores add in an order of their own
)


def programs() -> Iterator[str]:
    """The files whose tests compile programs, and compare what they do to arrays."""
    for path in sorted(TESTS.glob("*/test_*.py")):
        name = path.relative_to(TESTS).as_posix()
        ways = re.search(r"^from (?:agreement|parts) import .*\brun", path.read_text(), re.M)
        if name in ALSO or (ways and name not in LEFT_OUT):
            yield name


PROGRAMS = list(programs())


def done(name: str, how: str) -> dict[str, int]:
    """Runs the tests of a file; gives how many functions were compiled for a GPU, and called."""
    folders = [*filter(None, sys.path), str(TESTS / "support")]
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:ptx_collector", "-p", "on_gpu"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--on-gpu={how}", "-k", NOT_HERE, name],
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-5000:]
    said = re.search(r"^on the GPU: (\d+) functions, (\d+) calls.*", run.stdout, re.M)
    assert said is not None, run.stdout
    print(said[0])
    return {"functions": int(said[1]), "calls": int(said[2])}


@pytest.mark.needs_cuda
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_mean_the_same_on_a_gpu(name: str) -> None:
    found = done(name, "run")
    assert found["functions"] and found["calls"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compile_for_a_gpu(name: str, request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--compile-only", default=False):
        pytest.skip("without --compile-only")
    assert done(name, "compile")["functions"]


def test_what_needs_a_gpu_has_programs_to_run_there() -> None:
    assert {"language/test_programs.py", "examples/test_examples.py"} <= set(PROGRAMS)
    assert done("language/test_hints.py", "compile")["functions"]
