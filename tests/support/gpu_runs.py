"""Runs files of tests on a GPU, real or emulated, in a process with the plugin `on_gpu`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parents[1]
ALSO: Final = (
    "examples/test_cooperative.py",
    "examples/test_examples.py",
    "language/test_random_programs.py",
    "language/test_run.py",
)
LEFT_OUT: Final = {
    "cpu/test_interrupts.py": "signals interrupt loops on the CPU alone",
    "language/test_arch_clusters.py": "on a CPU each block is a cluster of its own",
    "language/test_arch_wgmma.py": "it emulates a GPU by itself",
    "language/test_reference.py": "its one program fails",
    "language/test_threads_wrong.py": "every program fails",
}
NOT_HERE: Final = (
    "not test_every_way_to_call"  # looks at the function itself
    " and not test_calling_a_jit_function"  # the same
    " and not test_a_sum_of_floats_is_rounded"  # tensor cores add in an order of their own
    " and not test_finite_numbers_of_all_sizes"  # the same, in sums of products of 8-bit floats
    " and not test_each_thread_has_the_result_of_its_own_atomic"  # atomics have no order
    " and not test_what_is_read_too_early_is_undefined"  # it reads what nobody has written
    " and not test_it_reads_on_a_gpu_from_constant_memory"  # it emulates a GPU by itself
)
_WITHOUT_TORCH: Final = """
import sys
sys.modules["torch"] = None
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


def programs() -> Iterator[str]:
    """The files whose tests compile programs, and compare what they do to arrays."""
    for path in sorted(TESTS.glob("*/test_*.py")):
        name = path.relative_to(TESTS).as_posix()
        ways = re.search(r"^from (?:agreement|parts) import .*\brun", path.read_text(), re.M)
        if name in ALSO or (ways and name not in LEFT_OUT):
            yield name


PROGRAMS: Final = list(programs())


def done(
    names: Sequence[str], how: str, *, gpu: str = "", torch: bool = True, only: str = ""
) -> dict[str, int]:
    """Runs the tests of files; gives how many functions were compiled for a GPU, and called, and
    how many were not, because the GPU is too old for them.

    `how` as the plugin's option; `gpu` as FERRULE_GPU has it, by default as this process has it.
    Without `torch` the tests see no PyTorch, which takes seconds to import.
    """
    start = ["-m", "pytest"] if torch else ["-c", _WITHOUT_TORCH]
    chosen = f"{NOT_HERE} and ({only})" if only else NOT_HERE
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:ptx_collector", "-p", "on_gpu"]
    folders = [*filter(None, sys.path), str(TESTS / "support")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    run = subprocess.run(
        [sys.executable, *start, *options, f"--on-gpu={how}", "-k", chosen, *names],
        cwd=TESTS,
        env={**environment, "FERRULE_GPU": gpu} if gpu else environment,
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-5000:]
    said = re.search(r"^on the GPU: (\d+) functions, (\d+) calls.*", run.stdout, re.M)
    assert said is not None, run.stdout
    print(said[0])
    too_new = re.findall(r"(\d+): [^;]* is known to GPUs from \w+ on", said[0])
    return {"functions": int(said[1]), "calls": int(said[2]), "too_new": sum(map(int, too_new))}
