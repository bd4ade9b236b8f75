"""Kernels on a GPU with nothing but ferrule: no pytest, no NumPy, no PyTorch.

    PYTHONPATH=compiler:runtime:specs python tests/gpu/alone.py [--compile-only]

Arrays are Python's, memory of the device is the driver's, and what a kernel leaves there is
compared with what Python finds.  Without a GPU, or with --compile-only, the programs are compiled
alone.
"""

from __future__ import annotations

import ctypes
import sys
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from gpu_driver import Driver

import ferrule as fe

COUNT, LARGE = 4096, 100 << 10


@fe.kernel
def add_kernel(a: fe.Pointer, b: fe.Pointer, n: fe.Int32, amount: fe.Float32):
    bx, _, _ = fe.arch.block_idx()
    tx, _, _ = fe.arch.thread_idx()
    i = bx * 256 + tx
    if i < n:
        b[i] = a[i] + amount


@fe.jit
def add(a: fe.Pointer, b: fe.Pointer, n: fe.Int32):
    """b = a + 0.5."""
    add_kernel(a, b, n, 0.5).launch(grid=(n + 255) // 256, block=256)


@fe.kernel
def reverse_kernel(a: fe.Pointer, b: fe.Pointer, n: fe.Int32):
    tx, _, _ = fe.arch.thread_idx()
    whole = fe.arch.get_dyn_smem(fe.Float32)
    for i in range(tx, n, 256):
        whole[i] = a[i]
    fe.arch.sync_threads()
    for i in range(tx, n, 256):
        b[i] = whole[n - 1 - i]


@fe.jit
def reverse(a: fe.Pointer, b: fe.Pointer, n: fe.Int32):
    """b is a from behind, through more shared memory than a kernel has unasked."""
    reverse_kernel(a, b, n).launch(grid=1, block=256, smem=LARGE)


@fe.kernel
def ranks_kernel(b: fe.Pointer):
    bx, _, _ = fe.arch.block_idx()
    rank, _, _ = fe.arch.block_in_cluster_idx()
    b[bx] = fe.Float32(rank)


@fe.jit
def ranks(a: fe.Pointer, b: fe.Pointer, n: fe.Int32):
    """The number of each block in its cluster of 8."""
    ranks_kernel(b).launch(grid=n, block=32, cluster=8)


@fe.jit
def large_ranks(a: fe.Pointer, b: fe.Pointer, n: fe.Int32):
    """The same in a cluster of 16."""
    ranks_kernel(b).launch(grid=n, block=32, cluster=16)


PROGRAMS: tuple[tuple[fe.Jit, Callable[[array[float]], Iterator[float]], int], ...] = (
    (add, lambda a: (x + 0.5 for x in a), 50),
    (reverse, lambda a: reversed(a), 80),
    (ranks, lambda a: (float(i % 8) for i in range(COUNT)), 90),
    (large_ranks, lambda a: (float(i % 16) for i in range(COUNT)), 90),
)
"""Each with what it finds, and the first compute capability that has what it needs."""


def compiled(program: fe.Jit, arch: str | None) -> fe.Function:
    """A function of two addresses and the number of elements."""
    pointer = fe.make_ptr(fe.Float32, 0)
    options = "--target cuda" + (f" --gpu-arch {arch}" if arch else "")
    return fe.compile(program, pointer, pointer, fe.Int32, options=options)


def found(driver: Driver, function: fe.Function, given: array[float]) -> array[float]:
    """What a function leaves in the second array."""
    size, back = len(given) * given.itemsize, array("f", bytes(len(given) * given.itemsize))
    places = [driver.allocate(size) for _ in range(2)]
    _copy(driver, "cuMemcpyHtoD_v2", ctypes.c_uint64(places[0]), given)
    function(*places, len(given))
    driver.synchronize()
    _copy(driver, "cuMemcpyDtoH_v2", back, ctypes.c_uint64(places[1]))
    for place in places:
        driver.free(place)
    return back


def _copy(driver: Driver, name: str, *ends: array[float] | ctypes.c_uint64) -> None:
    given = [
        ctypes.c_void_p(end.buffer_info()[0]) if isinstance(end, array) else end for end in ends
    ]
    driver.call(name, *given, ctypes.c_size_t(COUNT * 4))


def run(driver: Driver) -> int:
    """Every program on device 0; how many went wrong."""
    facts = driver.facts()
    for name, value in facts.items():
        print(f"{name}: {value}")
    own, wrong = int(facts["compute capability"].replace(".", "")), 0
    given = array("f", range(COUNT))
    for program, wanted, since in PROGRAMS:
        name = program.__name__
        if own < since:
            print(f"{name}: left out, needs compute capability {since / 10}")
            continue
        try:
            right = found(driver, compiled(program, None), given) == array("f", wanted(given))
            said = "right" if right else "WRONG VALUES"
        except Exception as error:
            right = "INVALID_CLUSTER_SIZE" in str(error)  # not every GPU has large ones
            said = f"{'not possible here' if right else 'WRONG'}: {type(error).__name__}: {error}"
        wrong += not right
        print(f"{name}: {said}")
    return wrong


def main() -> int:
    """Run, or compile; the exit status."""
    driver = "--compile-only" if "--compile-only" in sys.argv[1:] else Driver.find()
    if isinstance(driver, Driver):
        return min(1, run(driver))
    print(f"compiled alone for sm_90a: {driver}")
    for program, *_ in PROGRAMS:
        assert ".entry" in str(compiled(program, "sm_90a").inspect_ptx())
        print(f"{program.__name__}: compiled")
    return 0


if __name__ == "__main__":
    sys.exit(main())
