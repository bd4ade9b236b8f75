"""What functions of ferrule's own libraries made is safe where the library is closed."""

from __future__ import annotations

from pathlib import Path

import pytest
from exported import run_python

import ferrule as fe

pytestmark = pytest.mark.needs_cc


@fe.jit
def everything(a: fe.Tensor, name, n: fe.Int64):
    b = fe.empty_like(a)
    b[:] = a[:] + 1.0
    return b, fe.Array(name, n, None), fe.List(1.5, n), fe.Map([(name, n)]), fe.Shape((n, n)), name


@fe.jit
def refused(n: fe.Int64):
    if n > 0:
        fe.raise_error("ValueError", "a text that is long enough for the heap, and {}", n)


OUTLIVING = """
import gc, sys
import numpy as np
from ferrule.runtime import load_module

def maps():
    return sys.argv[1] in open("/proc/self/maps").read()

module = load_module(sys.argv[1])
made = module.everything(np.ones(3, np.float32), "a name of many letters", 7)
try:
    module.refused(3)
except ValueError as e:
    error = e.with_traceback(None)
assert maps()
del module
gc.collect()
assert not maps()
tensor, *others = made
print(np.from_dlpack(tensor).tolist(), *others, error)
del made, tensor, others, error
gc.collect()
"""


def test_results_and_errors_outlive_their_library(tmp_path: Path) -> None:
    vector = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
    made = fe.compile(everything, vector, "name", 1, options="--target cpu")
    path = tmp_path / "k.so"
    fe.export_library(path, [made, fe.compile(refused, 1, options="--target cpu")])
    said = run_python(OUTLIVING, path)
    assert said.startswith('[2.0, 2.0, 2.0] ("a name of many letters", 7, None) [1.5, 7] ')
    assert said.endswith("a text that is long enough for the heap, and 3\n")
