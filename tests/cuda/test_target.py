"""Which target is chosen on a machine with GPUs, in a process that meets the stand-in first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cuda_device import build, has_libcuda

CASES: dict[str, tuple[int, str, dict[str, str], str]] = {
    "with a GPU it is that GPU": (2, "", {}, ".target sm_90a"),
    "without a GPU it is the CPU": (0, "", {}, "cpu"),
    "the environment goes before the GPU": (2, "", {"FERRULE_TARGET": "cpu"}, "cpu"),
    "an option goes before the environment": (
        2, "--target cuda", {"FERRULE_TARGET": "cpu"}, ".target sm_90a",
    ),
    "an architecture can come from the environment": (
        2, "", {"FERRULE_GPU_ARCH": "sm_80"}, ".target sm_80",
    ),
    "an unknown architecture in the environment": (
        2, "", {"FERRULE_GPU_ARCH": "sm_91"},
        "the environment variable FERRULE_GPU_ARCH is 'sm_91', but LLVM",
    ),
    "an unknown target in the environment": (
        2, "", {"FERRULE_TARGET": "gpu"}, "the environment variable FERRULE_TARGET is 'gpu'",
    ),
    "a GPU target without a GPU wants an architecture": (
        0, "--target cuda", {},
        "the target cuda needs an architecture: this machine has no GPU to take it from",
    ),
}  # fmt: skip
"""GPUs, options, environment, and the line of PTX that names the target, or "cpu", or the error."""

SCRIPT = """
import ctypes, json, os, sys
sys.modules["torch"] = None
driver = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
import ferrule as fe
import test_compiled as t
from ferrule.runtime import StageError
from ferrule.runtime.devices import cuda_devices

def target(options):
    try:
        lines = t.compiled(options=options).inspect_ptx().splitlines()
    except StageError:
        return "cpu"
    except fe.CompileError as error:
        return error.diagnostic.message
    return next(line for line in lines if line.startswith(".target"))

found = {}
for name, (devices, options, environ, _) in json.loads(sys.argv[2]).items():
    driver.fake_reset(devices)
    cuda_devices.cache_clear()
    os.environ.update(environ)
    found[name] = target(options)
    for variable in environ:
        del os.environ[variable]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What each case comes to, all in one process."""
    if has_libcuda():
        pytest.skip("this machine has a real libcuda.so.1")
    library = build(tmp_path_factory.mktemp("stand_in"))
    paths = [str(Path(__file__).parent), *filter(None, sys.path)]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(library), json.dumps(CASES)],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": os.pathsep.join(paths), "PATH": os.environ["PATH"]},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("case", CASES)
def test_the_target_of_a_machine(found: Any, case: str) -> None:
    assert found[case].startswith(CASES[case][-1])
