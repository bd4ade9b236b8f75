"""Compiled functions in programs of JAX, beside handlers of XLA that others make.

    python benchmarks/jax_calls.py [--quick] [--json FILE]

All sides add two vectors of 64 floats, ten thousand times in one program of `jax.jit`, each time to
the sum before: a loop of fifty rounds with 200 calls. What is shown is the time of one call. XLA's
own sum is for comparison: XLA makes one loop of many. The trivial handler, in C, checks nothing and
reads two pointers: what XLA's call itself takes. Direct calls take JAX arrays without a program of
JAX, for each of which JAX makes a buffer, as it does for a `memoryview`.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
import subjects
from harness import (
    FULL,
    NS,
    QUICK,
    Effort,
    Goal,
    Result,
    Row,
    Side,
    Skipped,
    Table,
    arguments,
    call_side,
    finish,
    measure,
)

import ferrule as fe

CALLS: Final = 200
ROUNDS: Final = 50
OURS: Final = "fe.jax_call"
TRIVIAL: Final = "a trivial handler in C"
OTHER: Final = "jax-tvm-ffi"
ONE: Final = "one JAX array"
NUMPY: Final = "NumPy alone"

_C: Final = """
#include "xla/ffi/api/c_api.h"
XLA_FFI_Error* add(XLA_FFI_CallFrame* frame) {
  XLA_FFI_Extension_Base* extension = frame->extension_start;
  if (extension && extension->type == XLA_FFI_Extension_Metadata) {
    XLA_FFI_Metadata* said = ((XLA_FFI_Metadata_Extension*)extension)->metadata;
    said->api_version.major_version = XLA_FFI_API_MAJOR;
    said->api_version.minor_version = XLA_FFI_API_MINOR;
    said->traits = 0;
    return 0;
  }
  XLA_FFI_Buffer *x = frame->args.args[0], *y = frame->args.args[1], *z = frame->rets.rets[0];
  float *restrict a = x->data, *restrict b = y->data, *restrict c = z->data;
  for (int i = 0; i < 64; ++i) c[i] = a[i] + b[i];
  return 0;
}
"""

Call = Callable[[Any, Any], Any]


@fe.jit
def add(x: fe.Tensor, y: fe.Tensor, z: fe.Tensor):
    for i in range(x.shape[0]):
        z[i] = x[i] + y[i]


def compiled() -> fe.Function:
    """The sum of two vectors of one size."""
    vector = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
    return fe.compile(add, *[vector] * 3, options=subjects.OPTIONS).prepare()


def trivial(folder: Path) -> Call | None:
    """The handler in C; None where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    source, library = folder / "add.c", folder / "add.so"
    source.write_text(_C, encoding="utf-8")
    options = ["-O3", "-march=native", "-shared", "-fPIC", f"-I{jax.ffi.include_dir()}"]
    subprocess.run([compiler, *options, str(source), "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library))
    jax.ffi.register_ffi_target("benchmark_trivial", jax.ffi.pycapsule(loaded.add))
    return jax.ffi.ffi_call("benchmark_trivial", jax.ShapeDtypeStruct((64,), "float32"))


def other(function: fe.Function) -> Call | None:
    """The function as jax-tvm-ffi calls it; None where that is not installed."""
    if find_spec("jax_tvm_ffi") is None:
        return None
    import jax_tvm_ffi

    jax_tvm_ffi.register_ffi_target("benchmark_other", function, platform="cpu")
    return jax.ffi.ffi_call("benchmark_other", jax.ShapeDtypeStruct((64,), "float32"))


def chain(name: str, call: Call) -> Side:
    """One call of a compiled program with many."""

    def several(_: int, x: Any, y: Any) -> Any:
        for _ in range(CALLS):
            x = call(x, y)
        return x

    def run(x: Any, y: Any) -> Any:
        return jax.lax.fori_loop(0, ROUNDS, lambda i, x: several(i, x, y), x)

    x = jnp.ones(64)
    program = jax.jit(run).lower(x, x).compile()

    def sample() -> float:
        start = time.perf_counter()
        program(x, x).block_until_ready()
        return (time.perf_counter() - start) / (CALLS * ROUNDS)

    return Side(name, sample)


def sides(folder: Path) -> dict[str, Call]:
    """The calls by their names."""
    function = compiled()
    found = {
        OURS: fe.jax_call(function),
        TRIVIAL: trivial(folder),
        OTHER: other(function),
        "jax.numpy": jnp.add,
    }
    return {name: call for name, call in found.items() if call is not None}


def in_programs(effort: Effort, calls: dict[str, Call]) -> Row:
    """One call of a chain in a program."""
    measured = [chain(name, call) for name, call in calls.items()]
    return measure("a call in jax.jit", measured, effort)


def direct(effort: Effort) -> Row:
    """Calls that take JAX arrays, or NumPy's."""
    function, z = compiled(), np.empty(64, np.float32)
    ours, numpy = jnp.ones(64), np.ones(64, np.float32)
    given = {"two JAX arrays": (ours, ours, z), ONE: (ours, numpy, z), NUMPY: (numpy, numpy, z)}
    measured = [call_side(name, function, each, effort) for name, each in given.items()]
    measured.append(call_side("memoryview of one", memoryview, (ours,), effort))
    return measure("a direct call", measured, effort)


def run(effort: Effort) -> Result:
    """Measure all of it."""
    with tempfile.TemporaryDirectory() as folder:
        calls = sides(Path(folder))
        chained = in_programs(effort, calls)
    called = direct(effort)
    tables = (
        Table("Programs of JAX", NS, (chained,), (OURS, OTHER)),
        Table("Direct calls", NS, (called,), ("two JAX arrays", NUMPY)),
    )
    more = called.difference(ONE, NUMPY)
    goals = (
        Goal(chained.name, 0.85, chained.ratio(OURS, OTHER), "times jax-tvm-ffi"),
        Goal("an array of JAX in a direct call", 500, more and more * NS.scale, "ns more"),
    )
    missing = {TRIVIAL: "no C compiler", OTHER: "it is not installed"}
    skipped = (Skipped(name, why) for name, why in missing.items() if name not in calls)
    return Result(tables, goals, tuple(skipped))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("Compiled functions in programs of JAX", argv)
    finish("jax_calls", run(QUICK if given.quick else FULL), given)


if __name__ == "__main__":
    main()
