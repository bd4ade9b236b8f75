"""The network of tinygrad: right on the CPU and an emulated GPU, and entering the device once."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from cuda_device import FakeCuda, fake_cuda, forged
from host_memory import Memory, memory

__all__ = ["fake_cuda", "memory"]

FILE = Path(__file__).parents[2] / "examples" / "tinygrad_mlp.py"


@pytest.fixture(scope="module")
def module() -> ModuleType:
    pytest.importorskip("tinygrad")
    spec = importlib.util.spec_from_file_location("examples.tinygrad_mlp", FILE)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


def test_it_says_what_it_needs() -> None:
    program = f"import runpy, sys; sys.modules['tinygrad'] = None; runpy.run_path({str(FILE)!r})"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("this example needs tinygrad 0.14: pip install tinygrad")


def test_it_is_right_on_both(module: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    module.main()
    signature, *errors = capsys.readouterr().out.splitlines()
    assert signature.endswith("w2: Tensor([32, 10], float32)) -> Tensor([8, 10], float32)")
    assert all(float(each.rpartition(" ")[2]) < 1e-6 for each in errors) and len(errors) == 2


def test_the_whole_network_enters_the_device_once(
    module: ModuleType,
    fake_cuda: FakeCuda,
    memory: Memory,
) -> None:
    function = module.build(module.mlp, *module.SHAPES, target="cuda", arch="sm_80")
    arrays = [forged(np.zeros(shape, np.float32), 1) for shape in module.SHAPES]
    function(*arrays)
    fake_cuda.clear()
    function(*arrays)
    told = fake_cuda.names()
    assert told.count("cuLaunchKernelEx") == 5
    assert [told.count(f"cu{name}") for name in ("CtxGetDevice", "CtxPushCurrent_v2")] == [1, 1]
    assert len(memory.sizes) == 2 * 5, "four temporaries and the result"
