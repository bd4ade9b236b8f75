"""`ferrule inspect`: sources are compiled, built files are read and not run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from kernel_files import KERNELS

import ferrule as fe
from ferrule.commands import main

Writer = Callable[..., Path]
CPU = "--target cpu"


@fe.kernel
def add_kernel(x: fe.Tensor, y: fe.Tensor):
    i = fe.arch.thread_idx()[0]
    y[i] = x[i] + 1.0


@fe.jit
def added(x: fe.Tensor, y: fe.Tensor):
    """Adds one."""
    add_kernel(x, y).launch(grid=(1, 1, 1), block=(32, 1, 1))


@fe.kernel
def add_two_kernel(x: fe.Tensor, y: fe.Tensor):
    i = fe.arch.thread_idx()[0]
    y[i] = x[i] + 2.0


@fe.jit
def added_two(x: fe.Tensor, y: fe.Tensor):
    add_two_kernel(x, y).launch(grid=(1, 1, 1), block=(32, 1, 1))


X = fe.make_fake_compact_tensor(fe.Float32, (32,))
ADDED = (
    "added(x: Tensor([32], float32, device=cuda, read_only=True), "
    "y: Tensor([32], float32, device=cuda))"
)


def shown(*words: object, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["inspect", *map(str, words)]) == 0
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def compiled() -> list[fe.runtime.Function]:
    options = "--target cuda --gpu-arch sm_80,sm_90a"
    return [fe.compile(each, X, X, options=options) for each in (added, added_two)]


@pytest.fixture(scope="module")
def files(
    compiled: list[fe.runtime.Function], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("files")
    compiled[0].export_to_c(folder / "added.o")
    fe.export_library(folder / "both.a", compiled)
    return {"object": folder / "added.o", "archive": folder / "both.a"}


@pytest.mark.parametrize("kind", ["object", "archive"])
def test_ptx_of_a_file_is_that_of_the_compilation(
    kind: str,
    files: dict[str, Path],
    compiled: list[fe.runtime.Function],
    capsys: pytest.CaptureFixture[str],
) -> None:
    module = fe.runtime.load_module(files[kind])
    assert module.added.inspect_ptx() == compiled[0].inspect_ptx()
    if kind == "archive":
        assert module.added_two.inspect_ptx() == compiled[1].inspect_ptx()
    texts = compiled[0].inspect_ptx()
    assert isinstance(texts, dict)
    # A file has the best architecture first.
    whole = "\n".join([texts["sm_90a"], texts["sm_80"]])
    assert shown(f"{files[kind]}:added", "--ptx", capsys=capsys) == f"{whole}\n"
    assert module.inspect_source("ptx").startswith(whole)


@pytest.mark.needs_cc
def test_ptx_of_a_library_and_of_what_it_was_written_from_again(
    compiled: list[fe.runtime.Function], tmp_path: Path
) -> None:
    fe.export_library(tmp_path / "both.so", compiled)
    module = fe.runtime.load_module(tmp_path / "both.so")
    for function in compiled:
        assert module[function.name].inspect_ptx() == function.inspect_ptx()


def test_a_function_without_kernels_has_no_ptx(tmp_path: Path) -> None:
    fe.compile(added, X, X, options=CPU).export_to_c(tmp_path / "cpu.o")
    loaded = fe.runtime.load_module(tmp_path / "cpu.o").added
    with pytest.raises(LookupError, match=r"has no kernels for a GPU; available: asm$"):
        loaded.inspect_ptx()
    with pytest.raises(LookupError, match=r"cpu.o; available: asm$"):
        loaded.inspect_llvm()


def test_signatures_metadata_and_assembly(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(files["object"], capsys=capsys).strip() == ADDED
    found = json.loads(shown(files["archive"], "--metadata", "--json", capsys=capsys))
    assert list(found["functions"]) == ["added", "added_two"]
    images = found["functions"]["added"]["target"]["images"]
    assert [image["arch"] for image in images] == ["sm_90a", "sm_80"]
    if shutil.which("objdump") or shutil.which("llvm-objdump"):
        assert "<__tvm_ffi_added>:" in shown(files["object"], "--asm", capsys=capsys)


def test_a_source_is_compiled(source: Writer, capsys: pytest.CaptureFixture[str]) -> None:
    file = source()
    said = shown(file, capsys=capsys)
    assert "copied(x: Tensor([n0], float32, device=cpu" in said
    assert " where n0: int32\n\n    Copies x to y." in said
    assert "doubled(value: int32 = 4) -> int32" in said
    assert "define" in shown(f"{file}:doubled", "--llvm", capsys=capsys)
    assert "program @copied" in shown(f"{file}:copied", "--ir", capsys=capsys)


def test_a_source_and_the_file_built_from_it_show_the_same(
    source: Writer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = source()
    assert main(["build", str(file), "-o", str(tmp_path), "--format", "object"]) == 0
    capsys.readouterr()
    built = tmp_path / "copied.o"
    of_source = shown(f"{file}:copied", "--metadata", capsys=capsys)
    assert of_source == shown(built, "--metadata", capsys=capsys)
    assert shown(f"{file}:copied", capsys=capsys).startswith(shown(built, capsys=capsys).strip())


@pytest.mark.parametrize("target", ["x86_64-linux-gnu", "aarch64-linux-gnu"])
def test_assembly_of_a_source_is_for_the_target_of_its_job(
    source: Writer, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    text = KERNELS.replace(
        'Options(target="cpu")', f'Options(target="cpu", host_target="{target}")'
    )
    assert text != KERNELS
    said = shown(f"{source(text)}:doubled", "--asm", capsys=capsys)
    instructions = {line.split()[0] for line in said.splitlines() if line.startswith("\t")}
    assert ("retq" in instructions, "ret" in instructions) == ((target[0] == "x"), target[0] == "a")


@pytest.mark.needs_cc
def test_assembly_of_one_function_of_a_library(
    tmp_path: Path, compiled: list[fe.runtime.Function], capsys: pytest.CaptureFixture[str]
) -> None:
    if not (shutil.which("objdump") or shutil.which("llvm-objdump")):
        pytest.skip("no objdump")
    library = tmp_path / "both.so"
    fe.export_library(library, compiled)
    said = shown(f"{library}:added_two", "--asm", capsys=capsys)
    assert "<__tvm_ffi_added_two>:" in said and "<ferrule_body>:" in said
    assert "<__tvm_ffi_added>:" not in said and said.count("<ferrule_body>:") == 1
    assert said.strip() == fe.runtime.load_module(library).added_two.inspect_asm().strip()
    whole = shown(library, "--asm", capsys=capsys)
    assert "<__tvm_ffi_added>:" in whole and "<__tvm_ffi_added_two>:" in whole


def test_ptx_of_a_file_that_also_has_functions_without_kernels(
    tmp_path: Path, compiled: list[fe.runtime.Function], capsys: pytest.CaptureFixture[str]
) -> None:
    on_cpu = fe.compile(added_two, X, X, options=CPU)
    fe.export_library(tmp_path / "mixed.a", [compiled[0], on_cpu])
    assert main(["inspect", str(tmp_path / "mixed.a"), "--ptx"]) == 0
    said = capsys.readouterr()
    assert ".target sm_80" in said.out
    assert "added_two is left out: " in said.err and "no kernels for a GPU" in said.err
    found = json.loads(shown(tmp_path / "mixed.a", "--ptx", "--json", capsys=capsys))
    assert list(found["functions"]) == ["added"] and list(found["left_out"]) == ["added_two"]
    assert main(["inspect", f"{tmp_path / 'mixed.a'}:added_two", "--ptx"]) == 1
    assert "no kernels for a GPU" in capsys.readouterr().err
    for module in (
        fe.runtime.load_module(tmp_path / "mixed.a"),
        fe.Module([on_cpu, compiled[0]]),
    ):
        assert ".target sm_80" in module.inspect_source("ptx")
    with pytest.raises(fe.runtime.StageError, match="no kernels for a GPU"):
        fe.Module([on_cpu]).inspect_source("ptx")


def test_a_damaged_file_is_shown_with_a_warning(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = bytearray(files["object"].read_bytes())
    data[data.index(b"float32", data.index(b"added(x: Tensor"))] ^= 1 << 5
    (tmp_path / "damaged.o").write_bytes(data)
    assert main(["inspect", str(tmp_path / "damaged.o"), "--metadata"]) in (0, 1)
    assert "damaged.o: the file is damaged" in capsys.readouterr().err
    data = bytearray(files["object"].read_bytes())
    data[data.index(b".version")] ^= 1
    (tmp_path / "damaged.o").write_bytes(data)
    assert main(["inspect", str(tmp_path / "damaged.o")]) == 0
    said = capsys.readouterr()
    assert "added(x: " in said.out and "damaged.o: the file is damaged" in said.err


def test_what_is_refused(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "note.txt").write_text("no code")
    cases = {
        f"{files['archive']}:other": "its functions: added, added_two",
        str(tmp_path / "note.txt"): "note.txt",
        str(tmp_path / "none.so"): "No such file",
        str(tmp_path): "directory",
    }
    for words, message in cases.items():
        assert main(["inspect", words]) == 1
        assert message in capsys.readouterr().err, words
    assert main(["inspect", str(files["object"]), "--llvm"]) == 1
    assert "available: ptx, asm" in capsys.readouterr().err


def test_sass_without_a_disassembler_says_what_to_install(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ferrule.compiler.cuda import disassembly

    class Assembled:
        cubin = b""

    monkeypatch.setattr(disassembly, "find_disassembler", lambda: None)
    monkeypatch.setattr(disassembly, "assemble", lambda text, arch: Assembled)
    assert main(["inspect", str(files["object"]), "--sass"]) == 1
    assert "pip install nvidia-cuda-nvdisasm" in capsys.readouterr().err


@pytest.mark.needs_ptxas
def test_sass(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    from ferrule.compiler.cuda.disassembly import find_disassembler

    if find_disassembler() is None:
        pytest.skip("no nvdisasm and no cuobjdump")
    said = shown(files["object"], "--sass", capsys=capsys)
    assert "// sm_80" in said and "FADD" in said
