"""Host functions that decide where no comparison is seen: a call is what they do, or is refused.

What they do for other sizes is known: they are recorded for these, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda, forged
from triton_launcher import tensor

import ferrule as fe
from ferrule.frontends import triton as frontend

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]

Shape = tuple[int, ...]


@pytest.fixture
def hosts() -> ModuleType:
    """Kernels."""
    pytest.importorskip("torch")
    return pytest.importorskip("emulated_recordings")


def recorded(host: Any, *arguments: Any, **more: Any) -> frontend.Launches:
    with frontend.recording() as launches:
        launches.call(host, *arguments, **more)
    return launches


def zeros(*shape: int) -> Any:
    import torch

    return torch.zeros(shape)


def done_by(launches: frontend.Launches) -> list[Any]:
    """What a host function launches: grids and numbers."""
    found = []
    for each in launches:
        meta = {**dict(zip(each.kernel.arg_names, each.arguments, strict=False)), **each.keywords}
        grid = each.grid(meta) if callable(each.grid) else each.grid
        numbers = [n for n in each.arguments if isinstance(n, int)]
        if 0 not in grid:  # an empty grid launches nothing
            found.append(((*grid, 1, 1)[:3], numbers, each.keywords))
    return found


def launched(gpu: FakeCuda, constants: Sequence[Any]) -> list[Any]:
    """What a function launched; the first two parameters are tensors, the last two are Triton's."""
    found = []
    for each, known in zip(gpu.launches(), constants, strict=True):
        numbers = [int.from_bytes(b, "little", signed=True) for b in each.parameters[2:-2]]
        found.append((tuple(each.grid), numbers, known))
    return found


def both(shape: Shape) -> list[Any]:
    return [zeros(*shape), zeros(shape[0])]


BLOCK = 128


def slices(x: Any, total: Any, squares: Any) -> None:
    part = x[:, :64]
    squares[(x.shape[0],)](part, total, part.stride(0), part.shape[1], BLOCK=BLOCK)


def slices_from_the_end(x: Any, total: Any, squares: Any) -> None:
    part = x[:-40]
    squares[(part.shape[0] + 1,)](x, total, x.stride(0), x.shape[1], BLOCK=BLOCK)


def every_second(x: Any, total: Any, squares: Any) -> None:
    part = x[:, ::2]
    squares[(x.shape[0],)](part, total, part.stride(0), part.shape[1], BLOCK=BLOCK)


def rows_of_a_view(x: Any, total: Any, squares: Any) -> None:
    rows = x.view(-1)
    squares[(rows.shape[0],)](rows, total, 2, x.shape[1], BLOCK=BLOCK)


def elements_of_a_shape(x: Any, total: Any, squares: Any) -> None:
    squares[(x.shape[0],)](x, total, x.shape.numel(), x.shape[1], BLOCK=BLOCK)


def rows_of_four(x: Any, total: Any, squares: Any) -> None:
    rows = x.view(-1, 4)
    squares[(rows.shape[0],)](x, total, 4, 4, BLOCK=BLOCK)


def logarithms(x: Any, total: Any, squares: Any) -> None:
    block = 2 ** math.ceil(math.log2(x.shape[1]))
    squares[(x.shape[0],)](x, total, x.stride(0), block, BLOCK=BLOCK)


def chunks(x: Any, total: Any, squares: Any) -> None:
    part = x.chunk(2, dim=1)[0]
    squares[(x.shape[0],)](part, total, x.stride(0), part.shape[1], BLOCK=BLOCK)


def texts(x: Any, total: Any, squares: Any) -> None:
    digits = len(f"{x.shape[1]}")
    squares[(x.shape[0],)](x, total, x.stride(0), digits, BLOCK=BLOCK)


def pairs(x: Any, total: Any, squares: Any) -> None:
    halves = x.view(x.shape[0], 2, -1)
    squares[(halves.shape[0],)](x, total, x.stride(0), x.shape[1], BLOCK=BLOCK)


def bytes_of_all(x: Any, total: Any, squares: Any) -> None:
    squares[(x.shape[0],)](x, total, x.nbytes, x.shape[1], BLOCK=BLOCK)


def a_part_that_begins_elsewhere(x: Any, total: Any, squares: Any) -> None:
    rows = x[x.shape[0] % 2 :]
    squares[(rows.shape[0],)](rows, total, x.stride(0), x.shape[1], BLOCK=BLOCK)


def a_wide_one(x: Any, total: Any, squares: Any) -> None:
    wide = x.shape[1] >= 64 and not x.is_same_size(total)
    squares[(x.shape[0],)](x, total, 3 if wide else 2, x.shape[1], BLOCK=BLOCK)


SHAPES: Sequence[Shape] = [(m, n) for m in (1, 4, 5, 6, 41, 100) for n in (4, 6, 40, 45, 64, 100)]
HOSTS: list[tuple[Any, list[Shape], int | str, int | str]] = [
    (slices, [(3, 100), (7, 120)], 5, 14),
    (slices_from_the_end, [(41, 50), (60, 64)], 3, 14),
    (every_second, [(3, 99), (7, 100)], 5, 38),
    (rows_of_a_view, [(4, 6), (6, 4)], 8, 38),
    (elements_of_a_shape, [(4, 6), (6, 4)], 8, 38),
    (rows_of_four, [(3, 40), (7, 64)], 9, 31),
    (pairs, [(3, 40), (7, 64)], 8, 32),
    (logarithms, [(3, 65), (7, 100)], 5, 8),
    (chunks, [(3, 99), (7, 100)], 5, 38),
    (texts, [(3, 40), (7, 64)], 8, 14),
    (bytes_of_all, [(3, 40), (7, 64)], 11, 38),
    (a_part_that_begins_elsewhere, [(4, 40), (6, 64)], 11, 38),
    (a_wide_one, [(3, 64), (7, 100)], 2, 2),
]


@pytest.mark.parametrize(("host", "ends", "within", "beyond"), HOSTS)
def test_a_call_is_what_the_host_function_does(
    gpu: FakeCuda,
    hosts: ModuleType,
    host: Any,
    ends: list[Shape],
    within: int | str,
    beyond: int | str,
) -> None:
    """Of many sizes some calls are taken, those between the recorded ones and with `general`; a
    text: the recordings do not tell."""

    def of(x: Any, total: Any) -> None:
        host(x, total, hosts.squares)

    for wanted, general in ((within, False), (beyond, True)):
        function = partial(function_of, of, ends, general=general)
        if isinstance(wanted, str):
            with pytest.raises(fe.CompileError, match=wanted):
                function()
        else:
            taken = [shape for shape in [*SHAPES, *ends] if takes(gpu, of, function(), shape)]
            assert len(taken) == wanted, taken


def function_of(host: Any, ends: Sequence[Shape], **how: Any) -> Any:
    """The function of recordings for these sizes, which takes numbers as they are."""
    first, *more = [recorded(host, *both(shape)) for shape in ends]
    return first.compile(*more, target="sm_90a", specialize=[{}], **how)


def takes(gpu: FakeCuda, host: Any, function: Any, shape: Shape) -> bool:
    """Whether a call is taken, which is then what the host function does for these sizes."""
    gpu.clear()
    try:
        function(tensor(*shape)[0], tensor(shape[0])[0])
    except ValueError:
        return False
    launches = recorded(host, *both(shape))  # which raises where the host function does
    done = done_by(launches)
    assert launched(gpu, [keywords for _, _, keywords in done]) == done, shape
    return True


def rows(hosts: ModuleType, x: Any, total: Any) -> None:
    hosts.squares[(x.shape[0],)](x, total, x.stride(0), x.shape[1], BLOCK=128)


def test_contiguous_tensors_are_compared(gpu: FakeCuda, hosts: ModuleType) -> None:
    """Two recordings of parts: a call with a compact tensor would go another way."""

    def host(x: Any, total: Any) -> None:
        hosts.squares[(x.shape[0],)](x, total, 3 if x.is_contiguous() else 2, x.shape[1], BLOCK=128)

    parts = [(zeros(3, 64)[:, :40], zeros(3)), (zeros(5, 60)[:, :50], zeros(5))]
    first, other = [recorded(host, *each) for each in parts]
    function = first.compile(other, target="sm_90a", general=True, specialize=[{}])
    wide = np.zeros((4, 64), np.float32)
    function(forged(wide[:, :45], 0), tensor(4)[0])
    assert launched(gpu, [{}])[0][:2] == ((4, 1, 1), [2, 45])
    with pytest.raises(ValueError, match="a recording has no other case"):
        function(tensor(4, 45)[0], tensor(4)[0])


def test_memory_is_that_of_one_tensor(gpu: FakeCuda, hosts: ModuleType) -> None:
    """In each recording, and the same in all of them."""
    import torch

    def two(x: Any, y: Any, total: Any) -> None:
        rows(hosts, x, total)
        rows(hosts, y, total)

    def either(x: Any, y: Any, total: Any) -> None:
        rows(hosts, x if x.shape[1] < 64 else y, total)

    def filled(x: Any, y: Any, total: Any) -> None:
        (total if x.shape[1] < 64 else y[:, 0]).zero_()
        rows(hosts, x, total)
        rows(hosts, x, y)

    def result(x: Any, y: Any, total: Any) -> Any:
        first, second = torch.empty(x.shape[0]), torch.empty(x.shape[0])
        rows(hosts, x, first)
        rows(hosts, x, second)
        return first if x.shape[1] < 64 else second

    x = zeros(3, 40)
    for one, other in ((x, x), (zeros(2, 3, 40)[0], zeros(2, 3, 40)[1]), zeros(2, 3, 40)):
        launches = recorded(two, one, other, zeros(3))
        if one.untyped_storage()._cdata == other.untyped_storage()._cdata:
            with pytest.raises(fe.CompileError, match="x and y are the same memory, or parts"):
                launches.compile(target="sm_90a")
    said = {
        either: "x is x in the first recording, and y in another",
        filled: "what is filled with 0 is total in the first recording, and y in another",
        result: "total is result_0 in the first recording, and other memory in another",
    }
    for host, text in said.items():
        ends = [[zeros(m, n), zeros(m, 1), zeros(m)] for m, n in ((3, 40), (5, 100))]
        if host is either:
            ends = [[zeros(m, n), zeros(m, n), zeros(m)] for m, n in ((3, 40), (5, 100))]
        one, other = [recorded(host, *each) for each in ends]
        with pytest.raises(fe.CompileError, match=text):
            one.compile(other, target="sm_90a")


def test_what_pytorch_does_to_arguments_is_no_launch(gpu: FakeCuda, hosts: ModuleType) -> None:
    """Also if no launch takes them; all of one filled with a number is a launch."""
    import torch

    counter = zeros(3)
    changes: list[tuple[Callable[[Any, Any], Any], str]] = [
        (lambda x, _: x.add_(1), "x is changed by torch's add_"),
        (lambda x, total: torch.add(total, total, out=x), "x is changed by torch's add,"),
        (lambda x, _: x.__setitem__(slice(0, 2), 1.0), "x is changed by torch's fill_"),
        (lambda x, _: torch._foreach_add_([x], 1.0), "x is changed by torch's _foreach_add_"),
        (lambda *_: counter.add_(1), "a tensor of the caller is changed by torch's add_"),
        (lambda *_: counter.zero_(), "a tensor of the caller is filled with 0"),
    ]
    for change, text in changes:

        def host(x: Any, y: Any, total: Any, change: Any = change) -> None:
            change(x, total)
            rows(hosts, y, total)

        launches = recorded(host, zeros(3), zeros(3, 40), zeros(3))
        with pytest.raises(fe.CompileError, match=text):
            launches.compile(target="sm_90a")

    def wide(x: Any, y: Any, total: Any) -> None:
        if y.shape[1] > 64:
            x.add_(1)
        rows(hosts, y, total)

    one, other = [recorded(wide, zeros(3), zeros(3, n), zeros(3)) for n in (40, 100)]
    with pytest.raises(fe.CompileError, match="x is changed by torch's add_"):
        one.compile(other, target="sm_90a")

    def filling(x: Any, y: Any, total: Any) -> None:
        x.zero_()
        rows(hosts, y, total)

    function = recorded(filling, zeros(3), zeros(3, 40), zeros(3)).compile(target="sm_90a")
    function(tensor(3)[0], tensor(3, 40)[0], tensor(3)[0])
    assert len(gpu.launches()) == 2


@pytest.mark.usefixtures("allocator")
def test_results_have_the_sizes_with_which_they_are_made(gpu: FakeCuda, hosts: ModuleType) -> None:
    """Not those that had the same values in the recordings."""
    import torch

    def host(x: Any, total: Any) -> Any:
        rows(hosts, x, total)
        out = torch.empty(x.shape[0] - x.shape[0] % 16, x.shape[1])
        rows(hosts, x, out)
        return out

    function = function_of(host, [(32, 40), (48, 64)])
    assert tuple(function(tensor(48, 60)[0], tensor(48)[0]).shape) == (48, 60)
    assert tuple(function(tensor(40, 60)[0], tensor(40)[0]).shape) == (32, 60)


def test_grids_have_the_blocks_of_the_calls_config(gpu: FakeCuda, hosts: ModuleType) -> None:
    """Not those of the first one; and a heuristic of which a grid is made decides as in a
    recording."""
    import triton

    def host(x: Any, y: Any) -> None:
        n = x.numel()
        hosts.blocks[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)

    def by_heuristic(x: Any, y: Any) -> None:
        n = x.numel()
        hosts.steps[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)

    one, other = [recorded(host, zeros(n), zeros(n)) for n in (100, 5000)]
    sizes = frontend.by_size("n", {1000: 0, 8000: 1})
    for function in (
        one.compile(other, target="sm_90a", configs={0: sizes}),
        one[0].compile(other[0], target="sm_90a", choose=sizes),
    ):
        for n, blocks in ((100, 1), (1000, 4), (1001, 16), (5000, 79)):
            gpu.clear()
            function(tensor(n)[0], tensor(n)[0])
            assert [each.grid for each in gpu.launches()] == [(blocks, 1, 1)]
    with pytest.raises(fe.CompileError, match="the grid is another one for each config"):
        one[0].signature(other[0], config=sizes)

    one, other = [recorded(by_heuristic, zeros(n), zeros(n)) for n in (100, 1500)]
    function = one.compile(other, target="sm_90a", general=True)
    function(tensor(1600)[0], tensor(1600)[0])
    assert gpu.launches()[-1].grid == (2, 1, 1)
    with pytest.raises(ValueError, match="a recording has no other case"):
        function(tensor(5000)[0], tensor(5000)[0])


def test_a_grid_gets_all_arguments(hosts: ModuleType) -> None:
    """Those of heuristics are computed where they are asked for."""
    from ferrule.frontends.triton.recorded.asked import Asked

    def meta() -> Asked:
        return Asked({"n": 100}, {"BLOCK": lambda args: args["n"] * 2, "n": lambda _: 1})

    asked = meta()
    assert asked["n"] == 100 and asked.names == {"n"} and "BLOCK" in asked
    assert asked.get("BLOCK") == 200 and asked.get("WARPS", 4) == 4
    assert {**meta()} == dict(meta().items()) == {"n": 100, "BLOCK": 200}
    assert [*meta()] == [*meta().keys()] == ["n", "BLOCK"] and [*meta().values()] == [100, 200]
