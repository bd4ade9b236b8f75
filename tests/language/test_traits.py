"""What calls of a compiled function need: read off the program, kept in exported metadata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ferrule as fe
from ferrule.runtime.entry.key import CallTraits


@fe.jit
def straight(a: fe.Tensor):
    if a.shape[0] > 1:
        a[0] = a[1] * 2.0


@fe.jit
def loop(a: fe.Tensor):
    for i in range(a.shape[0]):
        a[i] = 0.0


@fe.kernel
def clear(a: fe.Tensor):
    a[0] = 0.0


@fe.jit
def launch(a: fe.Tensor, stream):
    clear(a).launch(grid=1, block=1, stream=stream)


@fe.jit
def outgoing(a: fe.Tensor):
    fe.call("my.function", a.shape[0])


def compiled(function: Any, *more: Any, options: str = "--target cpu") -> fe.Function:
    a = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
    return fe.compile(function, a, *more, options=options)


def env_stream() -> Any:
    return fe.make_fake_stream(use_tvm_ffi_env_stream=True)


def traits(function: fe.Function) -> CallTraits:
    origin: Any = function.__dict__["_ferrule_state"].origin
    found: CallTraits = origin.traits
    return found


def test_code_that_can_take_long_releases_the_gil() -> None:
    assert not compiled(straight).release_gil
    assert compiled(loop).release_gil
    assert compiled(launch, env_stream()).release_gil


def test_a_function_that_is_called_can_need_everything() -> None:
    assert traits(compiled(outgoing)) == CallTraits(True, True, True)


def test_an_option_decides_whether_the_gil_is_released() -> None:
    assert compiled(straight, options="--target cpu --release-gil=true").release_gil
    assert not compiled(loop, options="--target cpu --release-gil false").release_gil
    assert compiled(loop, options="--target cpu --release-gil auto").release_gil
    with pytest.raises(fe.CompileError, match="--release-gil must be auto, true or false"):
        compiled(loop, options="--release-gil maybe")
    with pytest.raises(fe.CompileError, match="release_gil must be True, False or 'auto'"):
        fe.Options(release_gil="yes")  # type: ignore[arg-type]


def test_the_stream_is_asked_for_where_the_signature_has_one() -> None:
    assert traits(compiled(launch, env_stream())) == CallTraits(True, True, False)
    assert traits(compiled(launch, fe.make_fake_stream())) == CallTraits(True, False, False)
    gpu = "--target cuda --gpu-arch sm_90a"
    assert traits(compiled(launch, fe.make_fake_stream(), options=gpu)).uses_stream


@pytest.mark.needs_cc
def test_a_loaded_function_is_called_as_the_compiled_one(tmp_path: Path) -> None:
    for function, name in ((straight, "straight"), (loop, "loop")):
        made = compiled(function)
        made.export_library(tmp_path / f"{name}.so")
        loaded = getattr(fe.runtime.load_module(tmp_path / f"{name}.so"), name)
        assert loaded.release_gil == made.release_gil
