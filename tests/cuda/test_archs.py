"""Kernels for several GPU architectures in one object, and which of them a GPU gets."""

from pathlib import Path
from typing import Any

import pytest
import tvm_ffi
from cuda_device import FakeCuda
from gpu_functions import add_one, compiled, floats, vector
from ptxas import ARCHS, assemble

import ferrule as fe
from ferrule.compiler.cuda.launcher.images import Image, Serves, best_first
from ferrule.compiler.errors import CompileError
from ferrule.runtime.binaries.metadata import NOTE_TYPE, read_metadata
from ferrule.runtime.binaries.objectfile import read_object

SEVERAL = "--target cuda --gpu-arch " + ",".join(ARCHS)

CHOICES = {
    "the exact one": ("sm_80,sm_90a,sm_100a", 90, "sm_90a"),
    "the exact one of an old GPU": ("sm_80,sm_90a,sm_100a", 80, "sm_80"),
    "an a image serves its own architecture alone": ("sm_80,sm_90a", 100, "sm_80"),
    "the highest plain one that is not above": ("sm_75,sm_80,sm_86,sm_90", 89, "sm_86"),
    "the special one before the plain one": ("sm_90,sm_90a", 90, "sm_90a"),
    "an f image serves its family": ("sm_90,sm_100f", 103, "sm_100f"),
    "an f image serves no other family": ("sm_90,sm_100f", 120, "sm_90"),
    "of a family the highest": ("sm_100f,sm_103,sm_103a", 103, "sm_103a"),
}


def call(options: str) -> None:
    compiled(options=options)(floats(8), floats(8))


@pytest.mark.parametrize("case", CHOICES)
def test_a_gpu_gets(fake_cuda: FakeCuda, case: str) -> None:
    archs, capability, expected = CHOICES[case]
    for device in (0, 1):
        fake_cuda.set_capability(device, capability)
    function = compiled(options=f"--target cuda --gpu-arch {archs}")
    function(floats(8), floats(8))
    assert fake_cuda.target == expected
    assert len(fake_cuda.launches()) == 1


@pytest.mark.parametrize("archs", ["sm_90a,sm_100a", "sm_90"])
def test_without_an_image_the_error_lists_images_and_device(
    fake_cuda: FakeCuda, archs: str
) -> None:
    fake_cuda.set_capability(0, 86)
    listed = ", ".join(f"{arch} (PTX)" for arch in reversed(archs.split(",")))
    with pytest.raises(fe.CudaError) as caught:
        call(f"--target cuda --gpu-arch {archs}")
    assert "the GPU cuda:0 has compute capability 8.6" in str(caught.value)
    assert f"the kernels were compiled for {listed}, which it does not run" in str(caught.value)
    assert fake_cuda.libraries == 0


def test_a_cubin_goes_before_the_ptx_of_its_architecture() -> None:
    ptx, cubin, old = Image(b"", "sm_90"), Image(b"", "sm_90", is_cubin=True), Image(b"", "sm_80")
    assert best_first([old, ptx, cubin]) == [cubin, ptx, old]
    assert (ptx.serves, cubin.serves) == (Serves.NEWER, Serves.FAMILY)


def test_the_ptx_of_several_architectures_is_a_dict() -> None:
    texts = compiled(options=SEVERAL).inspect_ptx()
    assert isinstance(texts, dict)
    assert tuple(texts) == ARCHS
    for arch, text in texts.items():
        assert f".target {arch}\n" in text


@pytest.mark.needs_ptxas
def test_ptxas_takes_each_of_several(tmp_path: Path) -> None:
    texts: Any = compiled(options=SEVERAL).inspect_ptx()
    for arch, text in texts.items():
        assemble(text, arch, tmp_path)


def test_export_writes_a_file_of_ptx_for_each(tmp_path: Path) -> None:
    function = compiled(options=SEVERAL)
    function.export_to_c(tmp_path / "k.ptx")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"k.{arch}.ptx" for arch in ARCHS
    )
    texts: Any = function.inspect_ptx()
    assert (tmp_path / "k.sm_80.ptx").read_text() == texts["sm_80"]


@pytest.mark.needs_cc
def test_an_exported_library_says_and_has_all_images(fake_cuda: FakeCuda, tmp_path: Path) -> None:
    path, code = tmp_path / "k.so", compiled(options=SEVERAL)
    code.export_library(path)
    code.export_to_c(tmp_path / "k.o")
    notes = read_object((tmp_path / "k.o").read_bytes()).notes
    images = read_metadata(next(n.text for n in notes if n.kind == NOTE_TYPE)).images
    assert [(image.kind, image.arch) for image in images] == [
        ("ptx", arch) for arch in reversed(ARCHS)
    ]
    for device in (0, 1):
        fake_cuda.set_capability(device, 100)
    tvm_ffi.load_module(str(path)).add_one(floats(8), floats(8))
    assert fake_cuda.target == "sm_100a"


def test_the_environment_can_name_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRULE_GPU_ARCH", "sm_80,sm_90a")
    texts = compiled(options="--target cuda").inspect_ptx()
    assert isinstance(texts, dict)
    assert list(texts) == ["sm_80", "sm_90a"]


@pytest.mark.parametrize(
    ("archs", "said"),
    [
        ("sm_80,sm_91", "one of --gpu-arch is 'sm_91', but LLVM"),
        ("sm_80,", "one of --gpu-arch is '', but LLVM"),
        (",", "one of --gpu-arch is '', but LLVM"),
    ],
)
def test_a_wrong_list_is_refused(archs: str, said: str) -> None:
    with pytest.raises(CompileError, match=said):
        compiled(options=f"--target cuda --gpu-arch {archs}")


def test_an_architecture_that_is_named_twice_is_compiled_once() -> None:
    texts: Any = compiled(options="--target cuda --gpu-arch sm_80,sm_80,sm_90").inspect_ptx()
    assert list(texts) == ["sm_80", "sm_90"]


def test_options_take_a_list_of_architectures() -> None:
    options = fe.Options(target="cuda", gpu_arch=["sm_80", "sm_90a"])
    assert options.gpu_arch == "sm_80,sm_90a"
    texts: Any = fe.compile(add_one, vector(), vector(), options=options).inspect_ptx()
    assert list(texts) == ["sm_80", "sm_90a"]
