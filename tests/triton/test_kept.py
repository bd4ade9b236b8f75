"""Compiled kernels are kept under keys of their own, and made in several processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import ferrule as fe
from ferrule.frontends import triton as frontend

pytestmark = pytest.mark.needs_cc

SUM = {"a": "*fp32[n: s]", "b": "*fp32[n: t]", "c": "*fp32[n]", "s": "s", "t": "t"}


@pytest.fixture
def kernels() -> ModuleType:
    """The kernels that are compiled here."""
    return pytest.importorskip("triton_kernels")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An empty folder of Triton's cache."""
    from triton import knobs

    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        yield tmp_path


def compiled(kernels: ModuleType, block: int = 256, **options: Any) -> fe.Function:
    """Sums of vectors, compiled without ferrule's own cache."""
    return frontend.compile(
        kernels.joined,
        signature=SUM,
        constexprs={"BLOCK": block},
        grid=lambda meta: (frontend.ceil_div(meta["n"], meta["BLOCK"]),),
        target="sm_90a",
        specialize="dispatch",
        options="--no-cache",
        **options,
    )


def failing(*_: Any, **__: Any) -> Any:
    """A compiler that must not be asked."""
    raise AssertionError("compiled again")


def entries(folder: Path) -> list[Path]:
    """The files of kept kernels."""
    return sorted(folder.glob("*/ferrule.json"))


def test_what_is_kept_is_not_compiled_again(
    kernels: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import triton

    first = compiled(kernels)
    assert len(entries(folder)) == 7
    monkeypatch.setattr(triton, "compile", failing)
    assert compiled(kernels).inspect_ptx() == first.inspect_ptx()
    with pytest.raises(fe.CompileError, match="compiled again"):
        compiled(kernels, 512)
    with pytest.raises(fe.CompileError, match="compiled again"):
        compiled(kernels, num_warps=8)


@pytest.mark.parametrize("spoil", [lambda data: data[:-9], lambda data: b"{}", lambda data: b"[1]"])
def test_an_entry_that_is_not_whole_is_made_again(
    kernels: ModuleType, folder: Path, spoil: Callable[[bytes], bytes]
) -> None:
    first = compiled(kernels)
    for path in entries(folder):
        path.write_bytes(spoil(path.read_bytes()))
    assert compiled(kernels).inspect_ptx() == first.inspect_ptx()


def test_nothing_is_kept_where_triton_is_told_to_compile(kernels: ModuleType, folder: Path) -> None:
    from triton import knobs

    with knobs.compilation.scope():
        knobs.compilation.always_compile = True
        compiled(kernels)
    assert entries(folder) == []


def test_triton_keeps_and_digests_nothing_for_processes_that_compile(
    kernels: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a second, and nine files for each kernel, of which nobody reads any."""
    from triton.runtime import cache

    from ferrule.compiler import workers

    if not workers.forks():
        pytest.skip("other threads run, so nothing is compiled in other processes")
    monkeypatch.setattr(cache, "triton_key", failing, raising=False)
    first = compiled(kernels)
    assert {each.name for each in folder.glob("*/*")} == {"ferrule.json"}
    monkeypatch.undo()
    monkeypatch.setattr(workers, "forks", lambda: False)
    for path in entries(folder):
        path.unlink()
    assert compiled(kernels).inspect_ptx() == first.inspect_ptx()


def test_a_kernel_that_ends_its_process_is_an_error(
    kernels: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import triton

    from ferrule.compiler import workers

    parent = os.getpid()

    def dying(*_: Any, **__: Any) -> Any:
        assert os.getpid() != parent, "compiled in the process of the tests"
        os._exit(9)

    if not workers.forks():
        pytest.skip("other threads run, so nothing is compiled in other processes")
    monkeypatch.setattr(workers, "cores", lambda: 2)
    monkeypatch.setattr(triton, "compile", dying)
    with pytest.raises(fe.CompileError, match=r"joined for sm_90: .*exit code 9"):
        compiled(kernels)
