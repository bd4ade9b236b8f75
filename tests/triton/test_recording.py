"""Launches of any library are recorded, written as text, and compiled: alone, and as one."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from cuda_device import FakeCuda
from programs import said, wrong
from triton_launcher import own_launch, same, tensor

import ferrule as fe
from ferrule.frontends import triton as frontend

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]


@pytest.fixture
def hosts() -> ModuleType:
    """Host functions with their kernels."""
    pytest.importorskip("torch")
    return pytest.importorskip("emulated_recordings")


def zeros(*shape: int, device: str = "cpu", **more: Any) -> Any:
    """A tensor of PyTorch."""
    import torch

    return torch.zeros(shape, device=device, **more)


def test_host_functions_compute_what_they_did() -> None:
    """Two launches and a fill with temporaries, one autotuned launch; for the recorded sizes, and
    for others."""
    found = said("emulated_recordings")
    assert len(found) == 3 and not wrong(found), found


STARTED = """\
frontend.compile(
    squares,
    signature={
        "x": "*fp32[total_0, n<=64]:16",
        "total": "*fp32[total_0]:16",
        "stride": "n",
        "n": "n",
    },
    constexprs={
        "BLOCK": 64,
    },
    grid=lambda meta: (meta["x"].shape[0],),
    num_warps=2,
)"""


def test_the_text_to_start_from(hosts: ModuleType) -> None:
    """Sizes are tied by what two recordings saw; a block that is a size rounded up bounds it."""
    one, other = hosts.recording(3, 5, 48), hosts.recording(2, 7, 60, device="meta")
    assert [each.kernel for each in one] == [hosts.squares, hosts.scaled, hosts.doubled]
    text = one[0].signature(other[0], general=True).replace("x_0", "total_0")
    said = "# requires n > 32: a recording has no other case: BLOCK of squares\n"
    assert text == said + STARTED
    assert '"x": "*fp32[14<=x_0<=15, 48<=n<=60]:16"' in one[0].signature(other[0])
    assert '"*fp32[15, 48]:16"' in one[0].signature()
    assert "grid=lambda meta: (frontend.fixed(15),)" in one[0].signature()
    assert "config=0" in one[2].signature(other[2])
    elements = 'meta["x"].shape[0] * meta["x"].shape[1]'
    assert f"grid=lambda meta: (frontend.ceil_div({elements}, 128),)" in one[2].signature(
        other[2], config=1
    )


def test_a_recorded_launch_is_tritons_own(gpu: FakeCuda, hosts: ModuleType) -> None:
    """One line more than the launch; with a second recording for other sizes, too."""
    one, other = hosts.recording(3, 5, 48), hosts.recording(2, 7, 60)
    alone = one[0].compile(target="sm_90a")
    symbolic = one[0].compile(other[0], target="sm_90a", specialize="dispatch", general=True)
    for function, rows, columns in ((alone, 15, 48), (symbolic, 15, 48), (symbolic, 9, 33)):
        gpu.clear()
        (x, at_x), (total, at_total) = tensor(rows, columns), tensor(rows)
        function(x, total)
        (ours,) = gpu.launches()
        given = at_x, at_total, columns, columns
        theirs = own_launch(gpu, hosts.squares, (rows,), *given, BLOCK=64, num_warps=2)
        same(ours, theirs)
    with pytest.raises(ValueError, match=r"x.shape\[1\].*expected to be at most 64"):
        symbolic(tensor(9, 65)[0], tensor(9)[0])


@pytest.mark.parametrize("how", ["by name", "by position"])
def test_options_are_read_of_constants_by_name_alone(gpu: FakeCuda, how: str) -> None:
    """As Triton reads them: `num_warps=8` is a constant of this kernel and the number of warps, 8
    by position the constant alone; also in the text and in a whole function."""
    kernels = pytest.importorskip("triton_kernels")
    by_name = how == "by name"
    last: tuple[Any, ...] = () if by_name else (64, 8)
    more = {"BLOCK": 64, "num_warps": 8} if by_name else {}
    x, y = zeros(64), zeros(64)
    with frontend.recording() as launches:
        kernels.wide[(1,)](x, y, 64, *last, **more)
    text = launches[0].signature().replace("wide,", "kernels.wide,")
    functions = [
        launches[0].compile(target="sm_90a"),
        launches.compile(target="sm_90a", name="whole"),
        eval(text.replace("wide,", 'wide, target="sm_90a",'), {"frontend": frontend, **locals()}),
    ]
    assert ("by_position(8)" in text) is not by_name
    for function in functions:
        gpu.clear()
        (one, at_one), (two, at_two) = tensor(64), tensor(64)
        function(one, two)
        (ours,) = gpu.launches()
        same(ours, own_launch(gpu, kernels.wide, (1,), at_one, at_two, 64, *last, **more))
        assert ours.block == (32 * (8 if by_name else 4), 1, 1)


def test_a_whole_function_is_exported(hosts: ModuleType, tmp_path: Path) -> None:
    one, other = hosts.recording(3, 5, 48), hosts.recording(2, 7, 60)
    function = one.compile(other, target=["sm_80", "sm_90a"], name="norm", general=True)
    assert str(function.signature) == (
        "norm(x: Tensor([x_0, x_1, n: ..64], float32), weight: Tensor([n: ..64], float32)) -> "
        "Tuple[Tensor([x_0, x_1, n: ..64], float32), Tensor([x_0, x_1, n: ..64], float32)]"
    )
    function.export_to_c(tmp_path / "norm.o")
    loaded = fe.runtime.load_module(tmp_path / "norm.o").norm
    assert str(loaded.signature) == str(function.signature)


def test_fakes_and_libraries_of_their_own_are_recorded(hosts: ModuleType) -> None:
    """Also wrappers that define `run` themselves, inside of fake tensors; kernels run again
    after it."""
    import torch
    import triton
    from torch._subclasses.fake_tensor import FakeTensorMode

    class Entry(triton.KernelInterface):  # type: ignore[misc]
        def __init__(self, fn: Any) -> None:
            self.fn = fn

        def run(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("launched")

    entry = Entry(hosts.squares)
    with FakeTensorMode():
        x, total = torch.zeros(4, 40), torch.zeros(4)
        with frontend.recording() as launches:
            with torch.cuda.device(0):
                entry[(4,)](x, total, 40, 40, BLOCK=64)
    (launch,) = launches
    assert launch.kernel is entry and launch.keywords == {"BLOCK": 64}
    function = launch.compile(target="sm_90a")
    assert "Tensor([4, 40], float32)" in str(function.signature)
    with pytest.raises(AssertionError, match="launched"):
        entry[(4,)](x, total, 40, 40, BLOCK=64)


def recorded(function: Any, *tensors: Any) -> frontend.Launches:
    with frontend.recording() as launches:
        launches.call(function, *tensors)
    return launches


def refused(text: str, one: frontend.Launches, *others: frontend.Launches, **how: Any) -> None:
    with pytest.raises(fe.CompileError, match=text):
        one.compile(*others, target="sm_90a", **how)


def test_what_no_launch_does_is_refused(hosts: ModuleType) -> None:
    import torch

    def halved(x: Any) -> Any:
        total = torch.empty(x.shape[0])
        hosts.squares[(x.shape[0],)](x, total, x.stride(0), x.shape[1], BLOCK=64)
        return total / 2

    def into(x: Any, out: Any) -> Any:
        hosts.squares[(x.shape[0],)](x, out, x.stride(0), x.shape[1], BLOCK=64)
        return out

    def part(x: Any) -> Any:
        total = torch.empty(2, x.shape[0])
        row = total.as_strided((x.shape[0],), (1,), x.shape[0])
        hosts.squares[(x.shape[0],)](x, row, x.stride(0), x.shape[1], BLOCK=64)
        return total

    refused(
        "result 0 is computed by torch's div, which is no launch", recorded(halved, zeros(3, 40))
    )
    refused("total is a part of result_0 that begins at element 3", recorded(part, zeros(3, 40)))

    def cleared(x: Any) -> Any:
        total = torch.zeros(x.shape[0])
        hosts.squares[(x.shape[0],)](x, total, x.stride(0), x.shape[1], BLOCK=64)
        total[0].zero_()
        return total

    def half(x: Any) -> Any:
        total, out = torch.zeros(2 * x.shape[0]), torch.empty(x.shape[0])
        total = torch.empty_strided((2 * x.shape[0],), (2,))
        for each in (total[: x.shape[0]], out):
            hosts.squares[(x.shape[0],)](x, each, x.stride(0), x.shape[1], BLOCK=64)
        return out

    refused("result 0 is computed by torch's zero_", recorded(cleared, zeros(3, 40)))
    refused("total is a part of a temporary", recorded(half, zeros(3, 40)))
    wide = zeros(3, 80)
    more = recorded(lambda x: into(wide, zeros(3)), wide[:, :40])
    refused("reaches beyond x, of which it is another view", more, results=())
    refused("has no launch", recorded(lambda x: None, zeros(3)), results=())
    with frontend.recording() as launches:
        halved(zeros(3, 40))
    refused("does not say which of them it returns", launches)
    taken = recorded(into, zeros(3, 40), zeros(3))
    function = taken.compile(results=(), target="sm_90a")
    assert [each.name for each in function.signature.params] == ["x", "out"]


def test_recordings_that_say_too_little_are_refused(hosts: ModuleType) -> None:
    def squares(x: Any, total: Any, blocks: int, block: int = 64) -> None:
        hosts.squares[(blocks,)](x, total, x.stride(0), x.shape[1], BLOCK=block)

    def one(rows: int, columns: int, blocks: int, block: int = 64) -> frontend.Launches:
        x, total = zeros(rows, columns), zeros(rows)
        with frontend.recording() as launches:
            squares(x, total, blocks, block)
        return launches

    refused("the grid's size x was 7, 9, which follows from no size", one(3, 40, 7), one(5, 50, 9))
    refused("x was 3, 5, which is .* and also", one(3, 129, 3), one(5, 257, 5))
    refused("BLOCK is 64 in one recording and 128 in another", one(3, 40, 3), one(5, 90, 5, 128))
    two = hosts.recording(3, 5, 48)
    refused("one recording launches squares, another squares, scaled, doubled", one(3, 4, 3), two)


def test_numbers_that_differ_are_given_by_callers(gpu: FakeCuda, hosts: ModuleType) -> None:
    import torch

    def one(rows: int, columns: int, eps: float) -> frontend.Launches:
        def scaled(x: Any, weight: Any, total: Any, eps: float) -> Any:
            out = torch.empty_like(x)
            hosts.scaled[(rows,)](x, total, weight, out, columns, columns, eps, BLOCK=64)
            return out

        return recorded(scaled, zeros(rows, columns), zeros(columns), zeros(rows), eps)

    recordings = one(3, 40, 0.5), one(5, 50, 0.25)
    assert '"eps": "fp32"' in recordings[0][0].signature(recordings[1][0])
    function = recordings[0].compile(recordings[1], target="sm_90a")
    assert [each.name for each in function.signature.params] == ["x", "weight", "total", "eps"]
    with pytest.raises(fe.CompileError, match="total is recorded as a tuple"):
        with frontend.recording() as launches:
            hosts.squares[(3,)](zeros(3, 40), (zeros(3),), 40, 40, BLOCK=64)
        launches[0].signature()


def test_sizes_beyond_a_recording_are_refused_where_no_grid_covers_them(
    gpu: FakeCuda, hosts: ModuleType
) -> None:
    """One block covered them: what the host function does for more is not known."""

    def one(rows: int, columns: int) -> frontend.Launches:
        x, total = zeros(rows, columns), zeros(rows)
        with frontend.recording() as launches:
            hosts.squares[(rows, -(-columns // 1000))](x, total, columns, columns, BLOCK=16)
        return launches

    function = one(3, 400).compile(one(5, 700), target="sm_90a", general=True)
    function(tensor(900, 500)[0], tensor(900)[0])
    with pytest.raises(ValueError, match=r"expected to be at most 700"):
        function(tensor(2, 1001)[0], tensor(2)[0])


def test_a_kernel_that_a_warmup_compiled_is_recorded(gpu: FakeCuda, hosts: ModuleType) -> None:
    """As the tutorial of softmax does: the grid follows from the registers, and what is launched is
    the compiled kernel.  A later launch does not find what was compiled for the recording."""
    x, total, grids = zeros(15, 48), zeros(15), []

    def host() -> None:
        kernel = hosts.squares.warmup(x, total, 48, 48, BLOCK=64, num_warps=2, grid=(1,))
        kernel._init_handles()
        assert 0 < kernel.n_regs < 256 and kernel.metadata.num_warps == 2
        grids.append(min(15, 65536 // (kernel.n_regs * 64)))
        kernel[(grids[0], 1, 1)](x, total, 48, 48, 64)

    before = dict(hosts.squares.device_caches)
    with frontend.recording() as launches:
        host()
    assert dict(hosts.squares.device_caches) == before
    (launch,) = launches
    function = launch.compile(target="sm_90a")
    gpu.clear()
    (given, at), (out, at_out) = tensor(15, 48), tensor(15)
    function(given, out)
    (ours,) = gpu.launches()
    arguments = at, at_out, 48, 48
    same(ours, own_launch(gpu, hosts.squares, (grids[0],), *arguments, BLOCK=64, num_warps=2))


def test_a_recorded_launch_with_descriptors_has_their_sizes(gpu: FakeCuda) -> None:
    """Its grid is that of the recorded sizes, so the tensors of its descriptors keep theirs."""
    kernels = pytest.importorskip("triton_kernels")
    from triton.tools.tensor_descriptor import TensorDescriptor

    source = zeros(64, 64)
    with frontend.recording() as launches:
        made = [TensorDescriptor.from_tensor(each, [16, 64]) for each in (source, zeros(64, 64))]
        kernels.rows[(source.shape[0] // 16,)](*made, SIZE=16)
    function = launches[0].compile(target="sm_90a")
    assert "Tensor([64, 64], float32)" in str(function.signature)
    with pytest.raises(ValueError, match=r"shape\[0\].*expected to be 64, but got 128"):
        function(tensor(128, 64)[0], tensor(128, 64)[0])
