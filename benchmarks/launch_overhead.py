"""What a launch costs beside the driver: of the wrapper with its checks, and of launching alone.

    python benchmarks/launch_overhead.py [--quick] [--json FILE]

The driver is a stand-in whose calls return at once, so no GPU is needed, and what is measured is
what surrounds them. A loop in machine code calls a compiled function with arguments made before;
beside it stand a body that launches a kernel with parameters of its own, behind a wrapper that has
nothing to check, and the two calls of the driver by themselves, which every launch makes.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Final

import peers
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
    finish,
    measure,
    repetitions,
)

import ferrule as fe
from ferrule.compiler import targets
from ferrule.compiler.artefacts import Body
from ferrule.compiler.cuda.launcher.faults import failures
from ferrule.compiler.cuda.launcher.launch import Launcher
from ferrule.compiler.origin import CompiledOrigin, host_module
from ferrule.runtime import Engine, ObjectCode
from ferrule.runtime.abi import DeviceType, TypeIndex
from ferrule.runtime.linking.engine import host_triple
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import DLTENSOR, I32, I64, PTR
from ferrule.specs import Signature

FERRULE: Final = "ferrule, three tensors"
LAUNCH: Final = "ferrule, launching alone"
DRIVER: Final = "the driver's calls"
STAND_IN: Final = Path(__file__).resolve().parents[1] / "tests" / "support" / "fake_cuda" / "fast.c"
SONAME: Final = "libcuda.so.1"
OPTIONS: Final = "--target cuda --gpu-arch sm_80"
SIZE: Final = 1000

# The same two calls, with a config and parameters that are there already.
DRIVER_CALLS: Final = """
@config = internal global [56 x i8] zeroinitializer, align 8
@parameters = internal global [3 x ptr] zeroinitializer, align 8
define i32 @__tvm_ffi_unchecked(ptr %handle, ptr %args, i32 %count, ptr %result) {{
  %device = alloca i32
  %asked = call i32 inttoptr (i64 {cuCtxGetDevice} to ptr)(ptr %device)
  %launched = call i32 inttoptr (i64 {cuLaunchKernelEx} to ptr)(
      ptr @config, ptr @config, ptr @parameters, ptr null)
  %status = or i32 %asked, %launched
  ret i32 %status
}}
"""


@fe.kernel
def add_kernel(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    bx, _, _ = fe.arch.block_idx()
    tx, _, _ = fe.arch.thread_idx()
    i = bx * 256 + tx
    if i < a.shape[0]:
        c[i] = a[i] + b[i]


@fe.jit
def add(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    add_kernel(a, b, c).launch(grid=((a.shape[0] + 255) // 256,), block=(256,))


def compiler() -> list[str] | None:
    """The C compiler, if there is one."""
    chosen = shlex.split(os.environ.get("CC", ""))
    names = [*chosen[:1], "cc", "gcc", "clang"]
    found = next((name for name in names if shutil.which(name)), None)
    return None if found is None else (chosen if chosen[:1] == [found] else [found])


def load_stand_in(command: Sequence[str], folder: Path, *more: Path) -> ctypes.CDLL:
    """The driver that does nothing, loaded so that generated code finds it; `more` are sources of
    further functions."""
    path = folder / SONAME
    flags = ["-O2", "-shared", "-fPIC", f"-Wl,-soname,{SONAME}", "-o", str(path)]
    subprocess.run([*command, *flags, str(STAND_IN), *map(str, more)], check=True)
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


def driver_calls(driver: ctypes.CDLL) -> Engine:
    """Code that makes the calls of a launch and nothing else."""
    names = ("cuCtxGetDevice", "cuLaunchKernelEx")
    places = {name: ctypes.cast(driver[name], ctypes.c_void_p).value for name in names}
    return peers.load_text(DRIVER_CALLS.format(**places), "unchecked")


def launching() -> Engine:
    """Code that launches a kernel with three parameters of 16 bytes, and checks nothing."""
    emitter = Emitter("launching")
    launcher = Launcher(emitter, b"no image", ["kernel"])
    with emitter.define("ferrule_body", I32, [PTR], names=["values"]) as function:
        (values,) = function.args
        one, zero = emitter.const_i64(1), emitter.const_i32(0)
        entered, token, _ = launcher.enter(zero, values)
        with emitter.if_then(emitter.icmp("ne", entered, zero), likely=False):
            emitter.ret(entered)
        parameters = [emitter.alloca(I64, 2, name="parameter") for _ in range(3)]
        for parameter in parameters:
            emitter.store(values, parameter)
            emitter.store(one, emitter.index(parameter, I64, 1))
        sizes = [emitter.const_i64(4), one, one], [emitter.const_i64(256), one, one]
        stream = launcher.current_stream(zero)
        status = launcher.launch("kernel", *sizes, zero, stream, parameters, values)
        launcher.leave(token)
        emitter.ret(status)
    body = Body(emitter.text(), "ferrule_body", (), failures("in the launch", None))
    here = targets.host()
    origin = CompiledOrigin(host_module(Signature("launching", ()), body), "")
    return Engine.load(origin.emit("launching", here.cpu, here.triple))


def reload(function: fe.Function, path: Path) -> Engine:
    """The code of a function as it is exported, so that its address is known."""
    function.export_to_c(path)
    return Engine.load(ObjectCode(function.name, path.read_bytes(), host_triple(), ""))


def checked(folder: Path) -> Engine:
    """The code of `add`."""
    n = fe.sym_int()
    example = fe.make_fake_compact_tensor(fe.Float32, (n,), device="cuda")
    return reload(fe.compile(add, example, example, example, options=OPTIONS), folder / "add.o")


class Tensors:
    """Three vectors of float32 that say that they are on the first GPU, as arguments."""

    def __init__(self) -> None:
        self._shape = (ctypes.c_int64 * 1)(SIZE)
        self._strides = (ctypes.c_int64 * 1)(1)
        self._tensors = [self._tensor(number) for number in range(3)]
        index = int(TypeIndex.DLTENSOR_PTR)
        addresses = [ctypes.addressof(tensor) for tensor in self._tensors]
        self.args = (peers.Any16 * 3)(*[peers.Any16(index, 0, at) for at in addresses])

    def _tensor(self, number: int) -> ctypes.Array[ctypes.c_char]:
        head = (1 << 20) * (number + 1), int(DeviceType.CUDA), 0, 1, 0x00012002
        tail = ctypes.addressof(self._shape), ctypes.addressof(self._strides), 0
        packed = struct.pack("<QiiiIQQQ", *head, *tail)
        assert len(packed) == DLTENSOR.size
        return ctypes.create_string_buffer(packed, len(packed))


def loop_side(
    name: str, engine: Engine, symbol: str, args: ctypes.Array[peers.Any16], effort: Effort
) -> Side:
    """Calls of a function from a loop in machine code."""
    return address_side(name, engine.address(f"__tvm_ffi_{symbol}"), args, effort)


def address_side(name: str, address: int, args: ctypes.Array[peers.Any16], effort: Effort) -> Side:
    """The same of code at an address, which somebody else keeps."""
    loop = peers.call_loop()

    def run(times: int) -> float:
        start = perf_counter()
        loop.run(address, args, times)
        return perf_counter() - start

    times = repetitions(run, effort.batch)
    return Side(name, lambda: run(times) / times)


def measured(command: Sequence[str], folder: Path, effort: Effort) -> Result:
    """The sides, interleaved."""
    driver = load_stand_in(command, folder)
    tensors, nothing = Tensors(), (peers.Any16 * 0)()
    engines = checked(folder), launching(), driver_calls(driver)
    sides = [
        loop_side(FERRULE, engines[0], "add", tensors.args, effort),
        loop_side(LAUNCH, engines[1], "launching", nothing, effort),
        loop_side(DRIVER, engines[2], "unchecked", nothing, effort),
    ]
    row = measure("a launch", sides, effort)
    table = Table("A launch from a loop in C", NS, (row,), (FERRULE, DRIVER))
    return Result((table,), tuple(goals(row)))


def goals(row: Row | None) -> Iterator[Goal]:
    """What the figures are held against."""
    seconds = None if row is None else row.difference(FERRULE, DRIVER)
    what = "a wrapper with three CUDA tensors, over the driver's calls"
    yield Goal(what, 15, None if seconds is None else seconds * NS.scale, "ns")


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("What a launch costs beside the driver", argv)
    command = compiler()
    if command is None:
        left_out = Skipped("all of it", "no C compiler ($CC, cc, gcc or clang) for the stand-in")
        finish("launch_overhead", Result((), tuple(goals(None)), (left_out,)), given)
        return
    with tempfile.TemporaryDirectory() as folder:
        result = measured(command, Path(folder), QUICK if given.quick else FULL)
        finish("launch_overhead", result, given)


if __name__ == "__main__":
    main()
