"""The tests of the language in PTX, executed: each call leaves the bits that it leaves on the CPU.

In every run some of them, for sm_90a; with `--hypothesis-profile=nightly` all, with random programs
among them, for more architectures, and with warps that take turns at random.
"""

from __future__ import annotations

import pytest
from gpu_runs import PROGRAMS, done

CHOSEN = (
    "language/test_kernel_programs.py",
    "language/test_leaving_early.py",
    "language/test_arch_mbarriers.py",
)


def test_programs_of_the_language() -> None:
    found = done(CHOSEN, "compare", gpu="emulated:sm_90a", torch=False)
    assert found["functions"] > 20 and found["calls"] > 20


@pytest.mark.nightly
@pytest.mark.parametrize("arch", ["sm_90a", "sm_75", "sm_80", "sm_100a", "sm_120"])
def test_all_of_the_language(arch: str) -> None:
    found = done(PROGRAMS, "compare", gpu=f"emulated:{arch},schedule=random:17")
    assert found["functions"] > 400 and found["calls"] > 500
