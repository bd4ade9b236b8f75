"""How kernels are made for a GPU: bounds, optimisation, cubins, files that are kept."""

from pathlib import Path
from typing import Any

import pytest
from cuda_device import FakeCuda
from gpu_functions import add_one_kernel, compiled, floats, vector
from ptxas import ARCHS, assemble

import ferrule as fe
from ferrule.compiler.cuda import assembly as assembling
from ferrule.compiler.errors import CompileError
from ferrule.runtime import StageError
from ferrule.runtime.artefacts import KernelInfo
from ferrule.runtime.binaries.metadata import NOTE_TYPE, read_metadata
from ferrule.runtime.binaries.objectfile import read_object

CUDA = "--target cuda --gpu-arch sm_90a"
SEVERAL = "--target cuda --gpu-arch " + ",".join(ARCHS)

pytestmark = pytest.mark.filterwarnings("error")


def one(options: str, function: Any = None, *examples: Any) -> str:
    given = () if function is None else (function, *examples)
    text = compiled(*given, options=options).inspect_ptx()
    assert isinstance(text, str)
    return text


# ---- launch bounds ----


def test_launch_bounds_are_in_the_ptx() -> None:
    @fe.jit
    def bounded(a: fe.Tensor, b: fe.Tensor, n: fe.Int32):
        add_one_kernel(a, b).launch(
            grid=1, block=n, max_number_threads=(128, 2, 1), min_blocks_per_mp=3
        )

    module = one(CUDA, bounded, vector(), vector(), fe.Int32)
    assert ".maxntid 128, 2, 1" in module
    assert ".minnctapersm 3" in module


def test_of_several_launches_the_widest_bounds_hold() -> None:
    @fe.jit
    def bounded(a: fe.Tensor, b: fe.Tensor, n: fe.Int32):
        add_one_kernel(a, b).launch(grid=1, block=n, max_number_threads=128, min_blocks_per_mp=3)
        add_one_kernel(a, b).launch(grid=2, block=n, max_number_threads=256, min_blocks_per_mp=2)

    module = one(CUDA, bounded, vector(), vector(), fe.Int32)
    assert ".maxntid 256" in module
    assert ".minnctapersm 2" in module


# ---- optimisation ----


@pytest.mark.needs_ptxas
@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_ptxas_takes_every_level(level: int, tmp_path: Path) -> None:
    texts: Any = compiled(options=f"{SEVERAL} --opt-level {level}").inspect_ptx()
    for arch, text in texts.items():
        assemble(text, arch, tmp_path)


def test_the_level_reaches_the_ptx() -> None:
    first, last = (one(f"{CUDA} --opt-level {level}") for level in (0, 3))
    assert first.count("\n") > last.count("\n")


# ---- cubins ----


@pytest.mark.needs_ptxas
def test_a_cubin_is_in_the_object_and_ptx_for_newer_gpus(tmp_path: Path) -> None:
    function = compiled(options="--target cuda --gpu-arch sm_80,sm_90a --cubin")
    function.export_to_c(tmp_path / "k.o")
    data = (tmp_path / "k.o").read_bytes()
    text = next(note.text for note in read_object(data).notes if note.kind == NOTE_TYPE)
    images = [(image.kind, image.arch) for image in read_metadata(text).images]
    assert images == [("cubin", "sm_90a"), ("cubin", "sm_80"), ("ptx", "sm_80")]
    assert b".target sm_80" in data
    assert b".target sm_90a" not in data


@pytest.mark.needs_ptxas
def test_options_reach_ptxas(tmp_path: Path) -> None:
    options = f"{CUDA} --keep-cubin --dump-dir {tmp_path} --ptxas-options"
    function = compiled(options=f"{options} '--maxrregcount 16'")
    info: Any = function.kernel_info()
    assert info["add_one_kernel"].registers <= 16
    with pytest.raises(CompileError, match=r"cannot be assembled for sm_90a: .*nonsense"):
        compiled(options=f"{options} --nonsense")


def test_options_of_ptxas_need_a_cubin() -> None:
    with pytest.raises(CompileError, match="the driver will assemble these kernels") as caught:
        compiled(options=f"{CUDA} --ptxas-options=-v")
    assert caught.value.diagnostic.hint == "add --cubin, which assembles them here"


@pytest.mark.needs_ptxas
def test_kernel_info_has_the_numbers_of_each_kernel(tmp_path: Path) -> None:
    @fe.kernel
    def shared_kernel(a: fe.Tensor):
        tx, _, _ = fe.arch.thread_idx()
        own = fe.arch.alloc_smem(fe.Float32, 64)
        own[tx] = a[tx]
        fe.arch.sync_threads()
        a[tx] = own[63 - tx]

    @fe.jit
    def both(a: fe.Tensor, b: fe.Tensor):
        shared_kernel(a).launch(grid=1, block=64)
        add_one_kernel(a, b).launch(grid=1, block=64)

    info: Any = compiled(both, vector(), vector(), options=CUDA).kernel_info()
    assert set(info) == {"shared_kernel", "add_one_kernel"}
    assert (info["shared_kernel"].shared, info["add_one_kernel"].shared) == (256, 0)
    assert 0 < info["add_one_kernel"].registers < 64
    several: Any = compiled(both, vector(), vector(), options=SEVERAL).kernel_info()
    assert tuple(several) == ARCHS
    assert several["sm_90a"] == info


def test_what_both_assemblers_say_is_read() -> None:
    ptxas = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'f' for 'sm_90a'
ptxas info    : Function properties for f
    48 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 27 registers, used 1 barriers, 48 bytes cumulative stack size, 1024 bytes smem
"""
    linker = ptxas.replace("\n    48 bytes", "\nptxas         .     48 bytes")
    expected = {"f": KernelInfo(27, 12, 16, 48, 1024)}
    assert assembling.read_info(ptxas) == assembling.read_info(linker) == expected


def test_without_an_assembler_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(assembling, "find_ptxas", lambda: None)
    # A Python that finds no packages.
    monkeypatch.setattr(assembling, "_NVJITLINK", f"import sys; sys.exit({3})")
    with pytest.raises(CompileError, match="there is no ptxas and no nvJitLink") as caught:
        compiled(options=CUDA + " --cubin")
    assert "nvidia-cuda-nvcc" in str(caught.value.diagnostic.hint)
    with pytest.raises(CompileError, match="there is no ptxas and no nvJitLink"):
        compiled(options=CUDA).kernel_info()


def test_nvjitlink_makes_the_same_cubins_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        from cuda.bindings import nvjitlink

        nvjitlink.version()
    except Exception as error:  # of whatever class: it is not there, or not whole
        pytest.skip(f"no nvJitLink: {error}"[:80])
    monkeypatch.setattr(assembling, "find_ptxas", lambda: None)
    made = assembling.assemble(one(CUDA), "sm_90a", ("-O3",))
    assert made.cubin[:4] == b"\x7fELF"
    assert made.kernels["add_one_kernel"].registers > 0


def test_a_function_without_kernels_has_no_numbers() -> None:
    @fe.jit
    def nothing(a: fe.Tensor, b: fe.Tensor):
        pass

    with pytest.raises(StageError, match="no kernels for a GPU"):
        compiled(nothing, vector(), vector(), options=CUDA).kernel_info()


@pytest.mark.needs_ptxas
def test_cubins_are_loaded(fake_cuda: FakeCuda) -> None:
    function = compiled(options=CUDA + " --cubin")
    function(floats(8), floats(8))
    assert len(fake_cuda.launches()) == 1
    assert fake_cuda.target == "sm_90", "of PTX the letter would be known"


# ---- files that are kept ----


@pytest.mark.needs_ptxas
def test_ptx_and_cubins_are_kept_in_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    options = f"--target cuda --gpu-arch sm_80,sm_90a --keep-ptx --keep-cubin --dump-dir {folder}"
    texts: Any = compiled(options=options).inspect_ptx()
    assert sorted(path.name for path in folder.iterdir()) == [
        *("add_one.sm_80.cubin", "add_one.sm_80.ptx"),
        *("add_one.sm_90a.cubin", "add_one.sm_90a.ptx"),
    ]
    assert (folder / "add_one.sm_80.ptx").read_text() == texts["sm_80"]
    assert (folder / "add_one.sm_80.cubin").read_bytes()[:4] == b"\x7fELF"


def test_a_folder_alone_keeps_the_ptx(tmp_path: Path) -> None:
    compiled(options=f"{CUDA} --dump-dir {tmp_path}")
    assert [path.name for path in tmp_path.iterdir()] == ["add_one.sm_90a.ptx"]


def test_without_a_folder_files_go_to_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    compiled(options=f"{CUDA} --keep-ptx")
    assert [path.name for path in tmp_path.iterdir()] == ["add_one.sm_90a.ptx"]


def test_a_folder_that_cannot_be_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CompileError, match="what --dump-dir keeps cannot be written"):
        compiled(options=f"{CUDA} --dump-dir {tmp_path / 'file'}")


@pytest.mark.parametrize("options", ["--keep-ptx", "--cubin", "--libdevice", "--fast-math"])
def test_options_for_kernels_mean_nothing_on_the_cpu(options: str, tmp_path: Path) -> None:
    compiled(options=f"--target cpu {options} --dump-dir {tmp_path / 'none'}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["cubin", "keep_ptx", "fast_math", "libdevice"])
def test_a_switch_is_true_or_false(name: str) -> None:
    wrong: dict[str, Any] = {name: "yes"}
    with pytest.raises(CompileError, match=f"{name} must be a bool, but got 'yes'"):
        fe.Options(**wrong)
