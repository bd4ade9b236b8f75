"""What the launch of a Triton kernel costs on the host: by Triton's launchers, and compiled.

    python benchmarks/launch.py --only triton

Needs Triton and a C compiler, and no GPU: the driver is a stand-in whose calls return at once, so
what is measured is what surrounds them. `kernel[grid](…)` is Triton's usual launch,
`CompiledKernel[grid](…)` that of a kernel which was compiled before; the grid is a tuple. All get
as many tensors, numbers and constants; a compiled function has its constants in it. Triton's
tensors are PyTorch's, on the CPU, where that is installed, for it reads those the fastest; else,
and for ferrule, they are tvm-ffi's and say that they are on the first GPU.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness import NS, Effort, Goal, Result, Row, Table, call_side, measure
from launch_given import SIZE, Vector

import ferrule as fe
from ferrule.frontends import triton as frontend

FERRULE: Final = "ferrule"
LAUNCH: Final = "kernel[grid](…)"
COMPILED: Final = "CompiledKernel[grid](…)"
GOALS: Final = ((LAUNCH, 0.1), (COMPILED, 0.25))
GRID: Final = (8, 1, 1)


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel, the run-time arguments of a launch, and its constants."""

    name: str
    kernel: Any
    tensors: int = 0
    numbers: tuple[int | float, ...] = ()
    constants: tuple[int, ...] = ()
    specialize: str = "check"

    def given(self, tensors: Sequence[Any]) -> list[Any]:
        """Tensors and numbers."""
        return [*tensors[: self.tensors], *self.numbers]

    def compiled(self) -> fe.Function:
        """The function that takes these."""
        names = self.kernel.arg_names
        kinds = ["*fp32"] * self.tensors
        kinds += ["fp32" if isinstance(number, float) else "i32" for number in self.numbers]
        constants = dict(zip(names[len(kinds) :], self.constants, strict=True))
        signature = dict(zip(names, kinds, strict=False))
        return frontend.compile(
            self.kernel,
            signature=signature,
            constexprs=constants,
            grid=frontend.fixed(GRID),
            target="sm_90a",
            specialize=self.specialize,
        )


def cases() -> tuple[Case, ...]:
    """No arguments, 5 and 19, and 19 of which a call chooses a variant."""
    import triton_launched as kernels

    integers = (1000, 64, 3, 5, 7, 9, 11, 13, 17)
    return (
        Case("no arguments", kernels.nothing),
        Case("5 arguments: 3 tensors, 2 numbers", kernels.five, 3, (1000, 0.5), (1024,)),
        Case(
            "19 arguments: 5 tensors, 9 numbers, 5 constants",
            *(kernels.nineteen, 5, integers, (1, 2, 4, 8, 64)),
        ),
        Case(
            '19 arguments: 5 tensors, 10 numbers, 4 constants, "dispatch"',
            *(kernels.rows, 5, (*[1024] * 5, 1, 1, 1, 1, 1024), (1, 2, 4, 1024), "dispatch"),
        ),
    )


def activate(folder: Path) -> None:
    """Let Triton launch on the stand-in."""
    from triton import knobs
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.driver import CudaDriver, CudaLauncher, CudaUtils
    from triton.runtime import driver

    knobs.nvidia.libcuda_path = str(folder)

    class StandIn(CudaDriver):  # type: ignore[misc]
        def __init__(self) -> None:
            self.utils = CudaUtils()
            self.launcher_cls = CudaLauncher
            self.get_current_device = lambda: 0
            self.get_current_stream = lambda device=0: 0

        def get_current_target(self) -> Any:
            return GPUTarget("cuda", 90, 32)

    driver.set_active(StandIn())


def torch_vectors(count: int) -> list[Any]:
    """So many of PyTorch's vectors, none without it."""
    if importlib.util.find_spec("torch") is None:
        return []
    import torch

    return [torch.zeros(SIZE) for _ in range(count)]


def row(case: Case, vectors: Sequence[Vector], effort: Effort) -> Row:
    """The three launches of a case."""
    ours = [vector.tensor for vector in vectors]
    given, function = case.given(ours), case.compiled()
    whole = [*case.given(torch_vectors(len(ours)) or ours), *case.constants]
    launched = case.kernel[GRID]
    made = launched(*whole)
    return measure(
        case.name,
        [
            call_side(FERRULE, function, given, effort),
            call_side(LAUNCH, launched, whole, effort),
            call_side(COMPILED, made[GRID], whole, effort),
        ],
        effort,
    )


def goals(rows: Sequence[Row]) -> Iterator[Goal]:
    """What the figures are held against."""
    for each in rows:
        for side, most in GOALS:
            yield Goal(f"{each.name}, over {side}", most, each.ratio(FERRULE, side), "times")


def measured(folder: Path, effort: Effort) -> Result:
    """All of it, with the stand-in that lies in a folder and is loaded."""
    activate(folder)
    known = cases()
    vectors = [Vector() for _ in range(max(case.tensors for case in known))]
    rows = tuple(row(case, vectors, effort) for case in known)
    table = Table("A launch of a Triton kernel from Python", NS, rows, (FERRULE, LAUNCH))
    return Result((table,), tuple(goals(rows)))
