"""Loops that threads end at different times give each of them what its own loop would."""

from __future__ import annotations

from typing import Any

import ending_programs
import numpy as np
import pytest
from agreement import run_all_ways

import ferrule as fe
from ferrule.language.codegen.cpu import divergent

SEEDS = range(16)
COUNTS = (0, 1, 31, 32, 100, 333)
SPECIAL = (0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45, 3e38, 2.0, 7.0)


def built(text: str) -> Any:
    names: dict[str, Any] = {"fe": fe}
    fe.from_source(text, names)
    kinds = ("float32", "float64", "int32", "float64", "int64")
    tensors = [fe.row_major((fe.sym_int(),), kind) for kind in kinds]
    return fe.compile(names["host"], *tensors, fe.Int32, options="--target cpu")


def inputs(seed: int, count: int) -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(seed)
    x = random.choice([*SPECIAL, *random.uniform(-9, 9, 20)], count).astype(np.float32)
    y = random.choice([*SPECIAL, *random.uniform(-99, 99, 20)], count)
    edges = np.array([-(2**31), 2**31 - 1, -1, 0])
    k = random.choice([*edges, *random.integers(-40, 99, 30)], count).astype(np.int32)
    return [x, y, k]


def bits(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bits, with one NaN for all."""
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), np.nan, values)
    return values.view(np.int64)


def results(function: Any, seed: int, count: int) -> list[np.ndarray[Any, Any]]:
    given = inputs(seed, count)
    found = [np.full(count, -1.0), np.full(count, -1, np.int64)]
    function(*given, *found, count)
    return [bits(each) for each in found]


def compare(seed: int, patch: pytest.MonkeyPatch) -> bool:
    """Compares a program with each thread's own loop; whether its loops are masked."""
    text = ending_programs.program(seed)
    together = built(text)
    with patch.context() as inside:
        inside.setattr(divergent, "find", lambda *given: None)
        alone = built(text)
    for count in COUNTS:
        for found, wanted in zip(
            results(together, seed, count), results(alone, seed, count), strict=True
        ):
            np.testing.assert_array_equal(found, wanted, f"seed {seed}, {count}\n{text}")
    return "masked.head" in together.inspect_llvm()


def test_random_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum(compare(seed, monkeypatch) for seed in SEEDS) > len(SEEDS) // 2


@fe.kernel
def device_steps(x: fe.Tensor, k: fe.Tensor, o: fe.Tensor):
    i = fe.arch.block_idx()[0] * 64 + fe.arch.thread_idx()[0]
    if i < o.shape[0]:
        a, left, count = x[i], k[i], 0
        while left != 0 and a < 100.0:
            a = a * 1.5 + 1000 // left
            left -= 1
            count += 1
        o[i] = count


@fe.jit
def steps(x: fe.Tensor, k: fe.Tensor, o: fe.Tensor):
    device_steps(x, k, o).launch(grid=(o.shape[0] + 63) // 64, block=64)


def test_no_thread_divides_after_its_end() -> None:
    """Whose loop has ended has a divisor of 0; some never begin, and one has a NaN."""
    x = np.tile(np.array([0.5, np.nan, 200, 0], np.float32), 25)
    k = np.arange(100, dtype=np.int32) % 7
    run_all_ways(steps, (x, k, np.zeros(100, np.int32)))


@fe.kernel
def device_places(table: fe.Tensor, keys: fe.Tensor, o: fe.Tensor):
    i = fe.arch.block_idx()[0] * 64 + fe.arch.thread_idx()[0]
    if i < o.shape[0]:
        low, high, key = 0, table.shape[0], keys[i]
        while low < high:
            middle = (low + high) // 2
            if table[middle] < key:
                low = middle + 1
            else:
                high = middle
        last = low
        while last < table.shape[0] and table[last] == key:
            last += 1
        o[i] = last * 1000 + low


@fe.jit
def places(table: fe.Tensor, keys: fe.Tensor, o: fe.Tensor):
    device_places(table, keys, o).launch(grid=(o.shape[0] + 63) // 64, block=64)


@pytest.mark.parametrize("size", [0, 1, 50])
def test_no_thread_reads_after_its_end(size: int) -> None:
    """The element behind the table would be read by threads that have ended."""
    table = np.sort(np.random.default_rng(size).integers(0, 20, size)).astype(np.int32)
    keys = np.random.default_rng(1).integers(-2, 23, 70).astype(np.int32)
    run_all_ways(places, (table, keys, np.zeros(70, np.int32)))
    text = fe.compile(places, table, keys, keys, options="--target cpu").inspect_llvm()
    assert "masked.head:" in text


@fe.kernel
def device_row(x: fe.Tensor, o: fe.Tensor):
    i = fe.arch.block_idx()[0] * 64 + fe.arch.thread_idx()[0]
    if i < o.shape[0]:
        total = fe.Float32(0)
        for k in range(x.shape[1]):
            total += x[i, k]
            if total > 3.0:
                break
        o[i] = total


@fe.jit
def along_rows(x: fe.Tensor, o: fe.Tensor):
    device_row(x, o).launch(grid=(o.shape[0] + 63) // 64, block=64)


def test_threads_that_go_along_rows_of_their_own_go_alone() -> None:
    x, o = np.ones((5, 9), np.float32), np.ones(5, np.float32)
    assert "masked.head" not in fe.compile(along_rows, x, o, options="--target cpu").inspect_llvm()


@fe.kernel
def skips(out: fe.Tensor):
    t = fe.arch.thread_idx()[0]
    x, i = fe.Int32(0), fe.Int32(0)
    while i < t:
        if i % 3 == 1:
            i += 1
            continue
        if x > 20:
            break
        x += i
        i += 1
    out[t] = x


def skip_all(out: fe.Tensor):
    skips(out).launch(grid=1, block=32)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_short_loops_in_loops_are_compiled_without_a_word(
    level: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """LLVM warns on the standard error of a loop that it was told to unroll and could not."""
    out = np.zeros(32, np.int32)
    options = f"--target cpu --no-cache --opt-level {level}"
    fe.compile(skip_all, out, options=options)(out)
    assert capfd.readouterr().err == ""
    sums = np.cumsum([0 if i % 3 == 1 else i for i in range(31)])
    wanted = [0, *(next((s for s in sums[:t] if s > 20), sums[t - 1]) for t in range(1, 32))]
    np.testing.assert_array_equal(out, wanted)
