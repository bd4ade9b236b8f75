"""Tensors as examples in CuTe DSL's way: changed in place, or PyTorch's fake ones; exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.cutlass.cute import runtime
from ferrule.cutlass.utils import HardwareInfo
from ferrule.runtime.devices import attribute

CPU = "--target cpu"


@fe.jit
def twice(a: fe.Tensor):
    for i in range(a.shape[0]):
        a[i] = a[i] + a[i]


def test_methods_change_the_tensor() -> None:
    a = np.arange(8, dtype=np.float32)
    marked: Any = runtime.from_dlpack(a)
    assert marked.mark_compact_shape_dynamic(0, divisibility=2) is marked
    compiled = fe.compile(twice, marked, options=CPU)
    compiled(marked)
    compiled(np.ones(4, np.float32))
    assert a.tolist() == [0, 2, 4, 6, 8, 10, 12, 14]
    with pytest.raises(ValueError, match=r"divisible by 2, but got 3"):
        compiled(np.ones(3, np.float32))
    with pytest.raises(AttributeError, match="shape of a tensor cannot be assigned"):
        marked.shape = (4,)


def test_elements_that_are_stored_as_bytes() -> None:
    held: Any = runtime.from_dlpack(np.array([0x38, 0x40, 0xB8, 0], np.uint8))
    held.element_type = fe.Float8E4M3FN

    @fe.jit
    def total(a: fe.Tensor) -> fe.Float32:
        return fe.Float32(a[0]) + fe.Float32(a[1]) * 10 + fe.Float32(a[2]) * 100

    assert fe.compile(total, held, options=CPU)(held) == 1 + 20 - 100
    with pytest.raises(TypeError, match="a dtype of 8 bits for elements of float8_e4m3fn"):
        held.element_type = fe.Float16


def test_helpers_for_tensors_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from torch._subclasses.fake_tensor import FakeTensorMode

    from ferrule.cutlass.tensor_helpers import create_cute_tensor_for_fp8
    from ferrule.cutlass.torch import convert_cute_tensor

    with FakeTensorMode():
        fake: Any = runtime.from_dlpack(torch.zeros((3, 4)).t())
    assert (fake.shape, fake.stride) == ((4, 3), (1, 4))
    compiled = fe.compile(twice, runtime.from_dlpack(torch.zeros(3)), options=CPU)
    with FakeTensorMode():
        small = runtime.from_dlpack(torch.zeros(3))
    with pytest.raises(TypeError, match="a fake tensor of torch"):
        compiled(small)
    numbers = torch.tensor([[1.0, -2.0], [0.5, 4.0]])
    bytes_ = torch.zeros((2, 2), dtype=torch.uint8)
    made = create_cute_tensor_for_fp8(bytes_, fe.Float8E4M3FN, 1, numbers)
    assert made.element_type is fe.Float8E4M3FN
    assert (bytes_.view(torch.float8_e4m3fn).float() == numbers).all()
    convert_cute_tensor(numbers + 1, made, fe.Float8E4M3FN)
    assert (bytes_.view(torch.float8_e4m3fn).float() == numbers + 1).all()
    with pytest.raises(TypeError, match=r"elements of torch.uint8, expected torch.float16"):
        create_cute_tensor_for_fp8(bytes_, fe.Float16, 1)


def test_exports_into_a_folder(tmp_path: Path) -> None:
    n = fe.sym_int()
    compiled = fe.compile(twice, fe.make_fake_compact_tensor(fe.Float32, (n,)), options=CPU)
    compiled.export_to_c(file_path=tmp_path, file_name="two", function_prefix="times_two")
    a = np.ones(3, np.float32)
    fe.runtime.load_module(tmp_path / "two.o").times_two(a)
    assert a.tolist() == [2, 2, 2] and "times_two" in (tmp_path / "two.h").read_text()
    with pytest.raises(TypeError, match="not some of both"):
        compiled.export_to_c(tmp_path / "a.o", file_path=tmp_path, file_name="a")
    with pytest.raises(TypeError, match=r"export_to_c\(\) lacks the path"):
        compiled.export_to_c()


def test_what_a_machine_without_a_gpu_says() -> None:
    with pytest.raises(ValueError, match="a cluster has at least 1 block, but got 0"):
        HardwareInfo().get_max_active_clusters(0)
    with pytest.raises(ValueError, match="there is no GPU 99"):
        attribute(99, 16)
