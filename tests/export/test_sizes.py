"""How large objects are: they carry what they can reach, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lowered import vector

import ferrule as fe
from ferrule.runtime.binaries.objectfile import read_object

SHARES = b"GOMP_parallel"
ASKS = "TVMFFIEnvCheckSignals"
KIB = 1024


@fe.kernel
def device_add_one(a: fe.Tensor, b: fe.Tensor):
    i = fe.arch.block_idx()[0] * fe.arch.block_dim()[0] + fe.arch.thread_idx()[0]
    if i < b.shape[0]:
        b[i] = a[i] + 1


@fe.jit
def add_one(a: fe.Tensor, b: fe.Tensor):
    """b = a + 1."""
    grid = (fe.ceil_div(a.shape[0], 128), 1, 1)
    device_add_one(a, b).launch(grid=grid, block=(128, 1, 1))


@fe.jit
def doubled(a: fe.Tensor, b: fe.Tensor):
    b[:] = a[:] * 2


@fe.jit
def first(a: fe.Tensor, b: fe.Tensor):
    b[0] = a[0] * 2


@fe.jit
def halvings(a: fe.Tensor, b: fe.Tensor):
    n = a.shape[0]
    while n > 1:
        n //= 2
        b[0] = a[0] * n


def exported(function: Any, folder: Path) -> bytes:
    """The object of a function of two vectors."""
    options = "--target cpu --strip-paths"
    compiled = fe.compile(function, vector(), vector(), options=options)
    compiled.export_to_c(folder / "k.o")
    return (folder / "k.o").read_bytes()


def test_an_object_of_a_small_kernel_has_at_most_12_kib(tmp_path: Path) -> None:
    assert len(exported(add_one, tmp_path)) <= 12 * KIB


@pytest.mark.parametrize(
    ("function", "shares", "asks"),
    [(add_one, True, True), (doubled, True, True), (first, False, False), (halvings, False, True)],
)
def test_only_work_that_is_shared_brings_the_code_for_that(
    function: Any, shares: bool, asks: bool, tmp_path: Path
) -> None:
    data = exported(function, tmp_path)
    assert (SHARES in data) == shares
    assert (ASKS in read_object(data).undefined) == asks


def test_objects_have_no_tables_for_exceptions(tmp_path: Path) -> None:
    assert b".eh_frame" not in exported(add_one, tmp_path)
