"""A configuration whose block holds a whole row is for rows that fit it."""

from __future__ import annotations

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


def compiled(kernel: Any, n: Any = "n", **how: Any) -> Any:
    return frontend.compile(
        kernel,
        signature={"x": "*fp32[m, n: s, 1]", "total": "*fp32[m]", "stride": "s", "n": n},
        grid=lambda args: (args["x"].shape[0],),
        target="sm_90a",
        specialize=[{}],
        **how,
    )


def taken(function: Any, *more: Any) -> list[int]:
    """The lengths of rows that it takes."""
    found = []
    for n in (1, 64, 65, 100, 101, 128, 129, 300):
        try:
            function(tensor(3, n)[0], tensor(3)[0], *(n for _ in more))
        except ValueError as error:
            assert "BLOCK = 64 is the config's block for a whole row" in str(error)
        else:
            found.append(n)
    return found


def test_rows_fit_the_block_of_a_config(gpu: FakeCuda, hosts: ModuleType) -> None:
    """If another configuration's holds more: by the largest one, as by a kernel with one block, a
    caller says what is asked."""
    short = [1, 64]
    assert taken(compiled(hosts.summed, config=0)) == short
    assert taken(compiled(hosts.summed, n="i32", config=0), "n") == short
    assert len(taken(compiled(hosts.summed, config=1))) == 8
    assert len(taken(compiled(hosts.looped, config=0))) == 8


@pytest.mark.parametrize("name", ["turned", "named", "called"])
def test_rows_are_compared_as_a_kernel_writes_it(
    gpu: FakeCuda, hosts: ModuleType, name: str
) -> None:
    """From the right, by other names, in functions that it calls."""
    kernel = getattr(hosts, name)
    assert taken(compiled(kernel, config=0)) == [1, 64]
    assert len(taken(compiled(kernel, config=1))) == 8
    assert len(taken(compiled(hosts.shifted, config=0))) == 8


def test_a_call_is_compared_with_the_config_that_it_takes(gpu: FakeCuda, hosts: ModuleType) -> None:
    sizes = frontend.by_size("n", {64: 0, 300: 1})
    assert len(taken(compiled(hosts.summed, choose=sizes))) == 8
    sizes = frontend.by_size("n", {100: 0, 300: 1})
    assert taken(compiled(hosts.summed, choose=sizes)) == [1, 64, 101, 128, 129, 300]
    assert taken(compiled(hosts.summed, config={(100,): 0, None: 1})) == [
        1,
        64,
        65,
        101,
        128,
        129,
        300,
    ]
    assert taken(compiled(hosts.summed, config={(100,): 1, None: 0})) == [1, 64, 100]


def test_a_row_that_is_the_same_in_every_call_is_compared_at_once(hosts: ModuleType) -> None:
    compiled(hosts.summed, n=50, config=0)
    with pytest.raises(
        fe.CompileError, match="BLOCK = 64 is the config's block for a whole row, w"
    ):
        compiled(hosts.summed, n=100, config=0)
