"""What a host function does with sizes holds for the calls of which it holds, and for no others."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from cuda_device import FakeCuda
from triton_launcher import tensor

import ferrule as fe
from ferrule.frontends import triton as frontend

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]


@pytest.fixture
def hosts() -> ModuleType:
    """Kernels."""
    pytest.importorskip("torch")
    return pytest.importorskip("emulated_recordings")


def zeros(*shape: int, **more: Any) -> Any:
    import torch

    return torch.zeros(shape, **more)


def recorded(function: Any, *arguments: Any) -> frontend.Launches:
    with frontend.recording() as launches:
        launches.call(function, *arguments)
    return launches


def of_sizes(function: Any, *sizes: tuple[int, int], **how: Any) -> Any:
    """A function of `x` and `total`, recorded for these sizes of `x`."""
    first, *others = [recorded(function, zeros(*each), zeros(each[0])) for each in sizes]
    return first.compile(*others, target="sm_90a", **how)


def takes(function: Any, rows: int, columns: int) -> bool:
    """Whether it takes a call with these sizes."""
    try:
        function(tensor(rows, columns)[0], tensor(rows)[0])
    except ValueError as error:
        assert any(text in str(error) for text in ("Out of bound", "has no other case", "kind"))
        return False
    return True


def launched(hosts: ModuleType, x: Any, total: Any, **more: Any) -> None:
    options = {"BLOCK": 128, **more}
    hosts.squares[(x.shape[0],)](x, total, x.stride(0), x.shape[1], **options)


def test_sizes_lie_between_the_recorded_ones(gpu: FakeCuda, hosts: ModuleType) -> None:
    """What the host function does for others, nobody has seen; `general` says that it is the
    same, for all sizes or some."""

    def host(x: Any, total: Any) -> None:
        launched(hosts, x, total)

    sizes = (3, 40), (9, 70)
    function = of_sizes(host, *sizes)
    assert takes(function, 5, 50) and takes(function, 9, 70)
    assert not takes(function, 2, 50) and not takes(function, 10, 50)
    assert not takes(function, 5, 39) and not takes(function, 5, 71)
    rows = of_sizes(host, *sizes, general=["x_0"])
    assert takes(rows, 100, 50) and not takes(rows, 5, 71)
    both = of_sizes(host, *sizes, general=True)
    assert takes(both, 100, 128) and takes(both, 1, 1)
    assert not takes(both, 5, 129)  # its block ends there


DECISIONS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "a remainder": (lambda n, _: n % 16 == 0, "n % 16 == 0"),
    "a bound": (lambda n, _: n > 64, "n > 64"),
    "a bound of a float": (lambda n, _: n > 64.5, "n >= 65"),
    "a quotient": (lambda n, _: n / 16 <= 3, "n <= 48"),
    "one number": (lambda n, _: n == 64, "n == 64"),
    "one of several": (lambda n, _: n in (32, 64, 128), "n in"),
    "a quotient rounded up": (lambda n, _: -(-n // 16) <= 3, ""),
    "least": (lambda n, _: min(n, 64) == 64, ""),
    "a power of two": (lambda n, triton: triton.next_power_of_2(n) >= 128, ""),
    "by bits": (lambda n, _: 1 << (n - 1).bit_length() > 64, ""),
    "bits alone": (lambda n, _: n & (n - 1) == 0, ""),
    "by difference": (lambda n, _: (n - 1) // 32 == 1, ""),
    "a truth value": (lambda n, _: bool(n // 64), ""),
}


@pytest.mark.parametrize("name", DECISIONS)
@pytest.mark.parametrize("ends", [(33, 100), (48, 96), (64, 128), (40, 63), (100, 119)])
def test_what_a_host_function_decides_holds_in_calls(
    gpu: FakeCuda, hosts: ModuleType, name: str, ends: tuple[int, int]
) -> None:
    """A call that would go another way is refused, wherever it lies; those that go the way of a
    recording are taken, unless nothing but the recorded sizes can be told."""
    import triton

    decide, _ = DECISIONS[name]

    def host(x: Any, total: Any) -> None:
        launched(hosts, x, total, num_warps=2 if decide(x.shape[1], triton) else 4)

    outcomes = {n: bool(decide(n, triton)) for n in range(1, 129)}
    sizes = [(3, ends[0]), (5, ends[1])]
    if outcomes[ends[0]] != outcomes[ends[1]]:
        with pytest.raises(fe.CompileError, match="the options is"):
            of_sizes(host, *sizes, general=True)
        return
    function = of_sizes(host, *sizes, general=True)
    taken = [n for n in range(1, 129) if takes(function, 4, n)]
    right = [n for n, outcome in outcomes.items() if outcome == outcomes[ends[0]]]
    assert {*ends} <= {*taken} <= {*right}
    if name not in ("bits alone", "one of several", "least"):  # whose other calls go a third way
        assert taken == right


def test_numbers_follow_as_they_were_made(gpu: FakeCuda, hosts: ModuleType) -> None:
    """Of two recordings in which a number is the same by chance, too."""

    def host(x: Any, total: Any) -> None:
        rows, n = x.shape
        hosts.squares[(rows,)](x, total, n // 2, n - 1, BLOCK=128)

    function = of_sizes(host, (3, 100), (5, 101), general=True)
    for n in (7, 100, 101, 128):
        gpu.clear()
        assert takes(function, 4, n)
        (launch,) = gpu.launches()
        assert launch.grid == (4, 1, 1)
        numbers = [int.from_bytes(each, "little") for each in launch.parameters[2:4]]
        assert numbers == [n // 2, n - 1]


def test_constants_that_are_made_of_sizes_hold_where_they_are_made(
    gpu: FakeCuda, hosts: ModuleType
) -> None:
    import triton

    def host(x: Any, total: Any) -> None:
        launched(hosts, x, total, BLOCK=max(16, triton.next_power_of_2(x.shape[1])))

    def whole(x: Any, total: Any) -> None:
        block = triton.next_power_of_2(x.shape[1])
        assert x.shape[1] <= block < 1024
        launched(hosts, x, total, BLOCK=block)

    for each in (host, whole):
        function = of_sizes(each, (3, 40), (5, 60), general=True)
        assert [n for n in range(1, 200) if takes(function, 4, n)] == [*range(33, 65)]
    least = of_sizes(host, (3, 4), (5, 14), general=True)
    assert [n for n in range(1, 200) if takes(least, 4, n)] == [*range(1, 17)]


def test_a_grid_that_decides_holds_where_it_decided(gpu: FakeCuda, hosts: ModuleType) -> None:
    """As that of persistent kernels, `min(132, …)`."""

    def host(x: Any, total: Any) -> None:
        rows, n = x.shape
        grid = lambda meta: (min(132, -(-rows // 2)),)  # noqa: E731
        hosts.squares[grid](x, total, x.stride(0), n, BLOCK=128)

    few = of_sizes(host, (3, 40), (5, 60), general=True)
    assert takes(few, 262, 50) and not takes(few, 263, 50)
    many = of_sizes(host, (300, 40), (500, 60), general=True)
    assert takes(many, 265, 50) and not takes(many, 260, 50)


def test_a_size_whose_number_is_taken_is_a_recorded_one(gpu: FakeCuda, hosts: ModuleType) -> None:
    """What Python does with `int(n)` or a key of a dict is not seen, and others are for the caller
    to name."""

    def host(x: Any, total: Any) -> None:
        n = int(x.shape[1])
        launched(hosts, x, total, num_warps=2 if n > 64 else 4)

    sizes = (3, 70), (9, 100)
    function = of_sizes(host, *sizes, general=True)
    assert takes(function, 100, 70) and takes(function, 4, 100) and not takes(function, 100, 90)
    same_rows = of_sizes(host, (3, 70), (3, 100))
    with pytest.raises(ValueError, match="the recordings have no call of this kind"):
        same_rows(tensor(3, 71)[0], tensor(3)[0])
    named = of_sizes(host, *sizes, general=["n", "x_0"])
    assert takes(named, 100, 90) and takes(named, 100, 69)


def test_one_launch_keeps_what_was_decided_before_it(gpu: FakeCuda, hosts: ModuleType) -> None:
    def one(rows: int, columns: int) -> frontend.Launches:
        x, total = zeros(rows, columns), zeros(rows)
        with frontend.recording() as launches:
            n = x.shape[1]
            launched(hosts, x, total, num_warps=2 if n % 16 else 4)
            assert n > 0
        return launches

    recordings = one(3, 48), one(5, 64)
    function = recordings[0][0].compile(recordings[1][0], target="sm_90a", general=True)
    assert takes(function, 4, 80)
    with pytest.raises(ValueError, match=r"n % 16 == 0.*no other case: test_followed.py:\d+"):
        function(tensor(4, 50)[0], tensor(4)[0])
    text = recordings[0][0].signature(recordings[1][0], general=True)
    assert text.startswith("# requires n % 16 == 0: a recording has no other case: test_followed")


def test_names_of_general_sizes_are_checked(hosts: ModuleType) -> None:
    def host(x: Any, total: Any) -> None:
        launched(hosts, x, total)

    with pytest.raises(fe.CompileError, match="general names 'k', which is no size"):
        of_sizes(host, (3, 40), (5, 60), general=["k"])
    with pytest.raises(fe.CompileError, match="general, but all sizes are those of the one"):
        of_sizes(host, (3, 40), general=True)


def test_a_size_is_a_number_for_the_host_function(hosts: ModuleType) -> None:
    """Whatever it does with sizes comes out as always."""
    import math

    def numbers(n: Any, m: Any) -> list[Any]:
        return [
            *(n + m, n - 1, 2 * n, n // 7, n % 7, n / 4, 4 / n, n**2, 2**m, n << 2, n >> 1, 5 - n),
            *(n & 6, n | 1, n ^ m, -n, +n, abs(n), divmod(n, 5), n.bit_length(), round(n), ~n),
            *(math.ceil(n / 7), math.floor(n / 7), int(n / 7), math.sqrt(n), math.log2(n)),
            *(f"{n} {n:4d} {m!r}", str(n), hash(n), {n: 1}, [0] * m, list(range(m)), n * 1.5),
            *(n == 3, n != 3, n < m, n <= m, n > 2.5, n >= 2.5, n is None, n == "a", n in [8]),
            *(n / 2 == 2, n / 2 > m, n / 7 + 1, pow(n, 2, 5), max(n, m), min(n, 3), bool(n)),
            *(sum([n, m]), math.prod([n, m]), math.gcd(n, m), int(n), float(n), sorted([n, m])),
        ]

    with frontend.recording() as launches:
        found = launches.call(lambda x: numbers(*x.shape), zeros(41, 3))
    wanted = numbers(41, 3)
    assert found == wanted
    kinds = (int, float, bool, str, list, dict, tuple)
    assert all(isinstance(a, type(b)) for a, b in zip(found, wanted, strict=True))
    assert all(isinstance(each, kinds) for each in found)


def lengths(hosts: ModuleType, x: Any, lens: Any, read: Callable[[Any], Any]) -> Any:
    import torch

    total = torch.empty(x.shape[0])
    hosts.squares[(x.shape[0],)](x, total, x.stride(0), read(lens), BLOCK=128)
    return total


READS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "item": (lambda t: t.max().item(), "the numbers of a tensor"),
    "int": (lambda t: int(t[0]), "the numbers of a tensor"),
    "bool": (lambda t: 3 if t.any() else 4, "the numbers of a tensor"),
    "of itself": (lambda t: t.tolist()[0], "the numbers of lens"),
    "numpy": (lambda t: t.numpy()[0].item(), "the numbers of lens"),
    "array": (lambda t: int(__import__("numpy").asarray(t)[0]), "the numbers of lens"),
    "address": (lambda t: t.data_ptr() % 16, "the address of lens"),
    "a shape": (lambda t: t.nonzero().shape[0], "the numbers of lens"),
    "derived": (lambda t: (t.double() * 2).cumsum(0)[-1].item(), "the numbers of a tensor"),
    "by a list": (lambda t: [*map(int, t)][0], "the numbers of a tensor"),
    "an equality": (lambda t: int(t.equal(t + 1)), "the numbers of lens"),
    "of its size": (
        lambda t: __import__("torch").tensor([0, t.shape[0]]).diff().item(),
        "the numbers of a tensor",
    ),
}


@pytest.mark.parametrize("name", READS)
def test_numbers_that_a_host_function_reads_are_no_constants(hosts: ModuleType, name: str) -> None:
    """As recorded they would be those of every call; that they are is for the caller to say."""
    import torch

    read, what = READS[name]
    x, lens = zeros(3, 40), torch.tensor([7, 0, 5])
    launches = recorded(lambda x, lens: lengths(hosts, x, lens, read), x, lens)
    for compile_ in (launches.compile, launches[0].compile, launches[0].signature):
        with pytest.raises(fe.CompileError, match=f"reads {what} at test_followed.py"):
            compile_(target="sm_90a") if compile_ != launches[0].signature else compile_()
    with frontend.recording(fixed_data=True) as fixed:
        fixed.call(lambda x, lens: lengths(hosts, x, lens, read), x, lens)
    fixed.compile(target="sm_90a")


def test_numbers_of_tables_are_constants(hosts: ModuleType) -> None:
    """What follows from nothing that a caller gives is the same in every call."""
    import torch

    def read(_: Any) -> int:
        return int(torch.arange(5).sum()) + len(torch.tensor([1, 2]).tolist())

    launches = recorded(lambda x, y: lengths(hosts, x, y, read), zeros(3, 40), zeros(3))
    launches.compile(target="sm_90a")


def test_what_a_launch_writes_is_not_read(hosts: ModuleType) -> None:
    import torch

    def host(x: Any) -> Any:
        total = torch.zeros(x.shape[0])
        launched(hosts, x, total)
        if total.sum() > 0:
            launched(hosts, x, total)
        return total

    launches = recorded(host, zeros(3, 40))
    with pytest.raises(fe.CompileError, match="reads the numbers of a tensor"):
        launches.compile(target="sm_90a")


def test_what_is_made_before_the_call_is_the_callers(gpu: FakeCuda, hosts: ModuleType) -> None:
    """Arguments that are made inside of the recording are neither made nor filled by a function."""
    import torch

    def host(x: Any, total: Any, weight: Any, out: Any) -> Any:
        hosts.scaled[(x.shape[0],)](x, total, weight, out, 40, 40, 0.5, BLOCK=64)

    with frontend.recording() as launches:
        x, total, out = torch.zeros(3, 40), torch.ones(3), torch.empty(3, 40)
        launches.call(host, x, total, torch.full((40,), 0.5), out)
    function = launches.compile(results=(), target="sm_90a")
    assert [each.name for each in function.signature.params] == ["x", "total", "weight", "out"]
    gpu.clear()
    function(tensor(3, 40)[0], tensor(3)[0], tensor(40)[0], tensor(3, 40)[0])
    assert [each.kernel for each in gpu.launches()] == ["scaled"]


def made(*shape: int) -> Any:
    import torch

    return torch.zeros(shape)


def test_arguments_that_are_made_in_the_recording_are_refused(hosts: ModuleType) -> None:
    """Without `call` nothing tells them from what the function makes."""
    import torch

    def host(x: Any) -> Any:
        total = torch.zeros(x.shape[0])
        launched(hosts, x, total)
        return total

    def refused(launches: frontend.Launches, *results: Any) -> None:
        with pytest.raises(fe.CompileError, match="x is a tensor that was made inside of the rec"):
            launches.compile(results=results, target="sm_90a")

    with frontend.recording() as by_name:
        x = torch.zeros(3, 40)
        y = host(x)
    refused(by_name, y)
    with frontend.recording() as by_another:
        y = host(made(3, 40))
    refused(by_another, y)
    with frontend.recording() as by_hand:
        x, total = torch.zeros(3, 40), torch.zeros(3)
        launched(hosts, x, total)
    refused(by_hand, total)
    given = zeros(3, 40)
    with frontend.recording() as right:
        y = host(given)
    right.compile(results=y, target="sm_90a")


def test_a_recording_is_of_one_host_function(hosts: ModuleType) -> None:
    def host(x: Any, total: Any) -> None:
        launched(hosts, x, total)

    with frontend.recording() as launches:
        launches.call(host, zeros(3, 40), zeros(3))
        with pytest.raises(fe.CompileError, match="a recording is of one host function"):
            launches.call(host, zeros(3, 40), zeros(3))


def test_fills_are_those_of_all_recordings(gpu: FakeCuda, hosts: ModuleType) -> None:
    """One that is made of a size holds for sizes that make the same of it."""
    import torch

    def host(x: Any, value: float) -> Any:
        total = torch.full((x.shape[0],), math.exp(value))
        launched(hosts, x, total)
        return total

    def by_size(x: Any, total: Any) -> None:
        total.fill_(x.shape[1] // 32)
        launched(hosts, x, total)

    function = of_sizes(by_size, (3, 40), (5, 60), general=True)
    assert [n for n in range(1, 129) if takes(function, 4, n)] == [*range(32, 64)]

    one, other = recorded(host, zeros(3, 40), 0.0), recorded(host, zeros(5, 60), 1.0)
    with pytest.raises(fe.CompileError, match=r"fills tensors with \[1.0\], another with \[2.71"):
        one.compile(other, target="sm_90a")


def of_rows(kernel: Any, *sizes: tuple[int, int], launch: int | None = None, **how: Any) -> Any:
    """A function of rows of a tuned kernel, whole or of one launch."""

    def host(x: Any, total: Any) -> None:
        rows, n = x.shape
        kernel[(rows,)](x, total, x.stride(0), n)

    first, *others = [recorded(host, zeros(*each), zeros(each[0])) for each in sizes]
    if launch is None:
        return first.compile(*others, target="sm_90a", **how)
    return first[launch].compile(*(each[launch] for each in others), target="sm_90a", **how)


def test_the_block_of_the_chosen_config_bounds_rows(gpu: FakeCuda, hosts: ModuleType) -> None:
    """Not that of another one: columns behind it would be left out."""
    one = of_rows(hosts.summed, (3, 40), (5, 60), general=True)
    assert takes(one, 4, 64) and not takes(one, 4, 65)
    two = of_rows(hosts.summed, (3, 40), (5, 60), general=True, configs={0: 1})
    assert takes(two, 4, 128) and not takes(two, 4, 129)
    text = r"BLOCK = 64 is the block of the config for n = 100(.|\n)*whose BLOCK is at least 100"
    sizes = (3, 40), (5, 100)
    for how in ({}, {"configs": {0: 0}}, {"launch": 0, "config": 0}):
        for recordings in (sizes, sizes[1:]):
            with pytest.raises(fe.CompileError, match=text):
                of_rows(hosts.summed, *recordings, **how)
    with pytest.raises(fe.CompileError, match=text):
        of_rows(hosts.summed, *sizes, configs={0: frontend.by_size("n", {100: 0, 128: 1})})
    with pytest.raises(fe.CompileError, match=text):
        of_rows(hosts.summed, sizes[1], launch=0, choose=frontend.by_size("n", {100: 0, 128: 1}))
    chosen = of_rows(hosts.summed, *sizes, configs={0: frontend.by_size("n", {64: 0, 128: 1})})
    assert takes(chosen, 4, 64) and takes(chosen, 4, 100)
    alone = of_rows(hosts.summed, sizes[1], launch=0, config=1)
    assert takes(alone, 5, 100)
    with pytest.raises(ValueError, match=r"x.shape\[1\].*expected to be 100, but got 64"):
        alone(tensor(5, 64)[0], tensor(5)[0])
    loop = of_rows(hosts.looped, *sizes, configs={0: 0})
    assert takes(loop, 4, 64) and takes(loop, 4, 100)


def test_a_recorded_config_is_for_the_calls_that_pruning_leaves_it(
    gpu: FakeCuda, hosts: ModuleType
) -> None:
    function = of_rows(hosts.pruned, (3, 40), (5, 60), general=True, configs={0: 1})
    assert takes(function, 4, 128)
    with pytest.raises(fe.CompileError, match="early_config_prune raises ValueError in every call"):
        of_rows(hosts.pruned, (3, 100))
