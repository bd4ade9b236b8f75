"""`cutlass.cute.testing.convert`: the elements of tensors of `from_dlpack` in other dtypes."""

import numpy as np
import pytest

from ferrule.cutlass.cute.runtime import from_dlpack
from ferrule.cutlass.testing import convert


@pytest.mark.needs_torch
def test_floats_of_8_bits_saturate_as_on_gpus() -> None:
    import torch

    wide = torch.tensor([[1.0, -2.5, 1000.0], [-1000.0, 448.0, float("nan")]])
    narrow = torch.zeros(2, 3, dtype=torch.float8_e4m3fn)
    convert(from_dlpack(wide), from_dlpack(narrow))
    back = torch.zeros(2, 3)
    convert(from_dlpack(narrow), from_dlpack(back))
    assert back[0].tolist() == [1.0, -2.5, 448.0]
    assert back[1, :2].tolist() == [-448.0, 448.0] and back[1, 2].isnan()
    with pytest.raises(ValueError, match=r"shapes \(2, 3\) and \(3,\)"):
        convert(from_dlpack(wide), from_dlpack(torch.zeros(3)))


def test_arrays_of_numpy() -> None:
    into = np.zeros((2, 3), np.int32)
    convert(from_dlpack(np.full((2, 3), 2.0, np.float32)), from_dlpack(into))
    assert (into == 2).all()
