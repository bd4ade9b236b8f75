"""Kernels on an NVIDIA GPU: what a launch costs, bandwidth, and a matmul on tensor cores.

    python benchmarks/gpu.py [--quick] [--json FILE]

ferrule stands beside PyTorch, Triton and CuPy, as far as they are installed.  Nothing needs to be
installed of ferrule itself: PYTHONPATH=compiler:runtime:specs.  Launches are timed on the host, in
bursts that fit into the driver's queue.  Kernels are timed by the driver's events, ten calls a
sample, on tensors much larger than the L2 cache; all sides of a row use the same tensors, and what
they give is compared first.  Softmax takes its exponentials with `fast=True`, as Triton does.

Without a GPU nothing is measured: all kernels are compiled to PTX, and nothing is written but
where --json says.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import gpu_kernels
import gpu_launches
from gpu_driver import Driver
from harness import (
    FULL,
    MS,
    NS,
    QUICK,
    Effort,
    Facts,
    Goal,
    Measured,
    Result,
    Row,
    Side,
    Skipped,
    Table,
    Unit,
    arguments,
    finish,
    measure,
)

FERRULE: Final = "ferrule"
TORCH: Final = "PyTorch"
TRITON: Final = "Triton"
COPY: Final = "the driver's copy"
MATMUL: Final = "matmul"
BOXES: Final = "slices as boxes"
BOXED: Final = (9, 10)
"""Compute capabilities with copies of boxes and registers that move between warps."""
US: Final = Unit("µs", 1e6)
TIMES: Final = 10
ARCHS: Final = ("sm_90a", "sm_80", "sm_100a")


@dataclass(frozen=True, slots=True)
class Sizes:
    """Elements of a vector, rows of a matrix, and the sizes of square matrices."""

    vector: int
    rows: int
    transposed: int
    multiplied: int


LARGE: Final = Sizes(vector=1 << 26, rows=1 << 14, transposed=1 << 13, multiplied=1 << 12)
SMALL: Final = Sizes(vector=1 << 12, rows=8, transposed=72, multiplied=128)


@dataclass(frozen=True, slots=True)
class Way:
    """A call that does some work, and the tensor that it writes, unless it returns one."""

    call: Callable[[], Any]
    out: Any


@dataclass(frozen=True, slots=True)
class Work:
    """Ways to the same result; `moved`: how many bytes have to be read and written for it."""

    name: str
    ways: Mapping[str, Way]
    wanted: Any
    moved: int


@dataclass(frozen=True, slots=True)
class Peers:
    """PyTorch, the module of the kernels in Triton or None, and PyTorch's name of the device,
    which is ferrule's of the target too."""

    torch: Any
    triton: Any
    device: str = "cuda"

    @classmethod
    def find(cls) -> Peers | None:
        """Those that are there; None without PyTorch, whose tensors all kernels take."""
        there = {name: importlib.util.find_spec(name) for name in ("torch", "triton")}
        torch = importlib.import_module("torch") if there["torch"] else None
        if torch is None or not torch.cuda.is_available():
            return None
        return cls(torch, importlib.import_module("gpu_triton") if there["triton"] else None)

    @property
    def options(self) -> str:
        """For compiling."""
        return f"--target {self.device}"

    def random(self, *shape: int) -> Any:
        """Normally distributed float32."""
        return self.torch.randn(*shape, device=self.device)


# ---- the works ----


def works(peers: Peers, sizes: Sizes) -> Iterator[Work]:
    """One after another: their tensors need not fit into the memory together."""
    yield add_work(peers, sizes)
    yield softmax_work(peers, sizes)
    yield rms_norm_work(peers, sizes)
    yield transpose_work(peers, sizes)


def work_of(
    peers: Peers,
    name: str,
    function: Callable[..., Any],
    by_torch: Callable[[Any], Any],
    wanted: Any,
    inputs: Sequence[Any],
    extra: Sequence[Any] = (),
) -> Work:
    """The work of functions that take inputs, the tensor to write to, and what else there is."""
    outs = [peers.torch.full_like(wanted, float("nan")) for _ in range(3)]
    ways = {
        FERRULE: Way(partial(function, *inputs, outs[0], *extra), outs[0]),
        TORCH: Way(partial(by_torch, outs[1]), outs[1]),
    }
    if peers.triton is not None:
        program = getattr(peers.triton, name)
        ways[TRITON] = Way(partial(program, *inputs, outs[2], *extra), outs[2])
    moved = sum(tensor.numel() * tensor.element_size() for tensor in (*inputs, wanted))
    return Work(name, ways, wanted, moved)


def add_work(peers: Peers, sizes: Sizes) -> Work:
    """c = a + b."""
    a, b = (peers.random(sizes.vector) for _ in range(2))
    function = gpu_kernels.compiled_add(peers.options)
    return work_of(peers, "add", function, lambda c: peers.torch.add(a, b, out=c), a + b, (a, b))


def softmax_work(peers: Peers, sizes: Sizes) -> Work:
    """Softmax of the rows."""
    x, softmax = peers.random(sizes.rows, gpu_kernels.COLUMNS), peers.torch.softmax
    function = gpu_kernels.compiled_softmax(peers.options)
    return work_of(peers, "softmax", function, lambda y: softmax(x, 1, out=y), softmax(x, 1), (x,))


def rms_norm_work(peers: Peers, sizes: Sizes) -> Work:
    """RMSNorm of the rows; PyTorch's cannot write to a tensor that is there."""
    x, weight = (peers.random(n, gpu_kernels.COLUMNS) for n in (sizes.rows, 1))
    eps, flat, norm = 1e-5, weight[0], peers.torch.nn.functional.rms_norm
    function = gpu_kernels.compiled_rms_norm(peers.options)
    scale = peers.torch.rsqrt(x.square().mean(1, keepdim=True) + eps)
    wanted = x * scale * weight
    return work_of(
        peers,
        "rms_norm",
        function,
        lambda _: norm(x, flat.shape, flat, eps),
        wanted,
        (x, weight),
        (eps,),
    )


def transpose_work(peers: Peers, sizes: Sizes) -> Work:
    """A transposed copy."""
    a = peers.random(sizes.transposed, sizes.transposed)
    function = gpu_kernels.example("transpose").compiled(peers.options)
    wanted = a.t().contiguous()
    return work_of(peers, "transpose", function, lambda out: out.copy_(a.t()), wanted, (a,))


def matmul_work(peers: Peers, sizes: Sizes) -> Work:
    """Square matrices of bfloat16, multiplied in several ways."""
    torch, n = peers.torch, sizes.multiplied
    # Whole numbers, so that products and sums of float32 are exact.
    a, b = (torch.randint(-8, 9, (n, n), device=peers.device).bfloat16() for _ in range(2))
    wanted, ways = a.float() @ b.float(), {}
    for name, compiler in matmuls(peers).items():
        out = torch.empty_like(a)
        ways[name] = Way(partial(compiler(peers.options), a, b, out), out)
    out = torch.empty_like(a)
    ways[TORCH] = Way(partial(torch.mm, a, b, out=out), out)
    return Work(MATMUL, ways, wanted, 6 * n * n)


def matmuls(peers: Peers) -> dict[str, Callable[[str], Any]]:
    """Those that the device has instructions for."""
    found = dict(gpu_kernels.MATMULS)
    if peers.device == "cuda" and peers.torch.cuda.get_device_capability()[0] in BOXED:
        found[BOXES] = gpu_kernels.compiled_boxed_matmul
    return found


# ---- running ----


def compare(work: Work, peers: Peers) -> None:
    """Runs each way once.  AssertionError where a result is not what is wanted."""
    for name, way in work.ways.items():
        returned = way.call()
        found = way.out if returned is None else returned
        rounding = 1e-5 if found.dtype == work.wanted.dtype else 1e-2
        peers.torch.testing.assert_close(
            found.to(work.wanted.dtype),
            work.wanted,
            rtol=rounding,
            atol=1e-5,
            msg=lambda text, name=name: f"{work.name} by {name}: {text}",
        )


def run_row(work: Work, peers: Peers, driver: Driver, effort: Effort) -> Row:
    """Compares the results, then the times, beside a copy that moves as many bytes."""
    compare(work, peers)
    seconds, half = driver.timer(), work.moved // 2
    places = [driver.allocate(half) for _ in range(2)]
    calls = {name: way.call for name, way in work.ways.items()}
    if work.name != MATMUL:
        calls[COPY] = partial(driver.copy, *places, half)
    sides = [Side(name, partial(seconds, call, TIMES)) for name, call in calls.items()]
    row = measure(work.name, sides, effort)
    for place in places:
        driver.free(place)
    return row


def measured(driver: Driver, effort: Effort, sizes: Sizes) -> Result:
    """All of it, on device 0."""
    peers = Peers.find()
    launch = gpu_launches.measured(driver, peers, effort)
    device = Facts("The device", ("what", "is"), tuple(driver.facts().items()))
    launches = Table("A launch", NS, (launch,), (gpu_launches.FROM_C, gpu_launches.BARE))
    skipped = list(gpu_launches.left_out(launch))
    if peers is None:
        skipped.append(Skipped("bandwidth and matmul", "no PyTorch that finds a GPU"))
        return Result((device, launches), tuple(goals(launch, ())), tuple(skipped))
    if peers.triton is None:
        skipped.append(Skipped("bandwidth of Triton's kernels", "not installed"))
    moving = [(run_row(work, peers, driver, effort), work.moved) for work in works(peers, sizes)]
    matmul = run_row(matmul_work(peers, sizes), peers, driver, effort)
    rows = tuple(row for row, _ in moving)
    n = sizes.multiplied
    tables = (
        device,
        launches,
        Table("Kernels that move memory", US, rows, (FERRULE, COPY)),
        bandwidth(moving),
        Table(f"bfloat16, {n} × {n} × {n}", US, (matmul,), (FERRULE, TORCH)),
    )
    return Result(tables, tuple(goals(launch, (*rows, matmul))), tuple(skipped))


def bandwidth(moving: Sequence[tuple[Row, int]]) -> Facts:
    """What is read and written in a second."""
    names = list(dict.fromkeys(side.name for row, _ in moving for side in row.sides))
    lines = []
    for row, moved in moving:
        sides = [row.side(name) for name in names]
        rates = ["" if side is None else f"{moved / side.median / 1e9:.0f}" for side in sides]
        lines.append((row.name, *rates))
    return Facts("Read and written, GB/s", ("", *names), tuple(lines))


def goals(launch: Row | None, rows: Sequence[Row]) -> Iterator[Goal]:
    """What the figures are held against; every one is there, measured or not."""
    yield from gpu_launches.goals(launch)
    found = {row.name: row for row in rows}

    def over(name: str, base: str, way: str = FERRULE) -> float | None:
        return found[name].ratio(way, base) if name in found else None

    yield Goal(f"add, over {COPY} of as many bytes", 1.11, over("add", COPY), "times")
    for name in ("add", "softmax", "rms_norm", "transpose"):
        for base in (TORCH, TRITON):
            yield Goal(f"{name}, over {base}", 1.0, over(name, base), "times")
    ways = (over(MATMUL, TORCH, name) for name in (*gpu_kernels.MATMULS, BOXES))
    best = min((ratio for ratio in ways if ratio is not None), default=None)
    yield Goal("the best matmul of bfloat16, over cuBLAS", 1.67, best, "times")


def compiled_only(reason: str, *, quick: bool) -> Result:
    """Without a GPU: every kernel becomes PTX, once."""
    archs = ARCHS[:1] if quick else ARCHS
    options, rows = f"--target cuda --gpu-arch {','.join(archs)}", []
    for name, compiler in gpu_kernels.compilers(quick=quick).items():
        start = perf_counter()
        ptx = compiler(options).inspect_ptx()
        seconds = perf_counter() - start
        texts = [ptx] if isinstance(ptx, str) else list(ptx.values())
        assert len(texts) == len(archs) and all(".entry" in text for text in texts)
        rows.append(Row(name, (Measured(FERRULE, (seconds,)),)))
    table = Table(f"Compiling for {', '.join(archs)}", MS, tuple(rows))
    return Result((table,), tuple(goals(None, ())), (Skipped("all that needs a GPU", reason),))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("Kernels and launches on an NVIDIA GPU", argv)
    driver = Driver.find()
    if isinstance(driver, str):
        # The figures of a machine with a GPU stay.
        given.json = given.json or Path(os.devnull)
        finish("gpu", compiled_only(driver, quick=given.quick), given)
        return
    effort, sizes = (QUICK, SMALL) if given.quick else (FULL, LARGE)
    finish("gpu", measured(driver, effort, sizes), given)


if __name__ == "__main__":
    main()
