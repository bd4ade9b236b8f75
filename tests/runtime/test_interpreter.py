"""What is assumed of the interpreter is tried; other builds of CPython run right."""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType

import pytest
import tvm_ffi

from ferrule.runtime import why_generic_calls
from ferrule.runtime.binaries.objectfile import Machine
from ferrule.runtime.calls import interpreter
from ferrule.runtime.calls.function import HEAP
from ferrule.runtime.calls.heaptype import make_heap_type
from ferrule.runtime.linking.engine import Engine, host_machine

from .conftest import compile_text

_VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"

_PROGRAM = """
import sys
sys.modules["torch"] = None
import numpy as np
{before}
import ferrule as fe

@fe.jit
def add(a: fe.Tensor, b: fe.Tensor, k: fe.Float32 = 1.0):
    if k < 0:
        fe.raise_error("ValueError", "k is {{}}", k)
    b[:] = a[:] + k
    return a.shape[0], "done"

n = fe.sym_int()
vector = fe.make_fake_compact_tensor(fe.Float32, (n,))
compiled = fe.compile(add, vector, vector, fe.Float32, options="--target cpu")
a, b = np.ones(3, np.float32), np.zeros(3, np.float32)
for _ in range(100):
    assert compiled(a, b) == (3, "done")
    assert compiled(a, b=b, k=2) == (3, "done")
    for wrong in (a, b, -1), (a, "b"), (a.astype(np.int8), b), ():
        try:
            compiled(*wrong)
        except (TypeError, ValueError):
            continue
        raise AssertionError(wrong)
bound = compiled.bind(a, b, 5.0)
assert bound() == (3, "done") and b.tolist() == [6, 6, 6]
print(fe.runtime.why_generic_calls())
"""


def run(python: str, folder: Path, before: str = "") -> str:
    """What the program prints under an interpreter, which imports what this one does."""
    program = folder / "program.py"
    program.write_text(_PROGRAM.format(before=before))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [python, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


@pytest.mark.parametrize("build", ["", "-dbg"])
def test_the_systems_python_and_its_debug_build(build: str, tmp_path: Path) -> None:
    """Debian's are linked to a fixed place, below 4 GiB; a debug build has other macros."""
    python = shutil.which(_VERSION + build, path="/usr/bin")
    if python is None:
        pytest.skip(f"needs /usr/bin/{_VERSION}{build}, the system's own")
    assert run(python, tmp_path) == "None"


@pytest.mark.parametrize("why", interpreter._ASSUMED)
def test_an_assumption_that_fails_is_named(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        interpreter, "_ASSUMED", MappingProxyType({**interpreter._ASSUMED, why: lambda: False})
    )
    assert interpreter.unfit() == why
    with pytest.raises(interpreter.Unfit, match=why):
        make_heap_type("ferrule.Function", "", tvm_ffi.Function)


def test_a_type_with_its_words_elsewhere_is_not_used() -> None:
    if HEAP is None:
        pytest.skip("this interpreter has no slot for a call")
    weaklist = HEAP.base_size + 24
    interpreter.check_type(HEAP.type, HEAP.size, HEAP.vectorcall_offset, weaklist)
    for wrong in (
        (HEAP.size + 8, HEAP.vectorcall_offset, weaklist),
        (HEAP.size, HEAP.plan_offset, weaklist),
        (HEAP.size, HEAP.vectorcall_offset, weaklist - 8),
    ):
        with pytest.raises(interpreter.Unfit):
            interpreter.check_type(HEAP.type, *wrong)


def test_where_an_assumption_fails_calls_are_generic_and_right(tmp_path: Path) -> None:
    before = """
from types import MappingProxyType
from ferrule.runtime.calls import interpreter
interpreter._ASSUMED = MappingProxyType({"for a test": lambda: False})
"""
    assert run(sys.executable, tmp_path, before) == "for a test"


def test_references_are_counted_by_the_interpreter_where_they_must(tmp_path: Path) -> None:
    before = """
from ferrule.runtime.calls import interpreter
from ferrule.runtime.entry import python
assert interpreter.counts_inline() == (sys.version_info < (3, 14))
python.counts_inline = lambda: False
"""
    assert run(sys.executable, tmp_path, before) == "None"


def test_here_calls_are_direct() -> None:
    reason = why_generic_calls()
    assert (reason is None) == (HEAP is not None)
    assert reason is None, f"this interpreter gives up speed: {reason}"


@pytest.mark.skipif(host_machine() is not Machine.X86_64, reason="needs code of x86-64")
@pytest.mark.parametrize("attribute", ["nonlazybind", ""])
def test_a_function_below_4_gib_is_reached(attribute: str) -> None:
    """LLVM's linker makes a call that reaches 2 GiB of one through an address in memory."""
    writable = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40  # MAP_32BIT
    page = mmap.mmap(-1, mmap.PAGESIZE, flags=flags, prot=writable)
    page.write(bytes.fromhex("b82a000000 c3"))  # mov eax, 42; ret
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    assert address < 1 << 32
    text = (
        f"declare i32 @low() {attribute}\n"
        "@value = external global i32\n"
        "define i32 @f() {\n %r = call i32 @low()\n"
        " %a = ptrtoint ptr @value to i64\n %t = trunc i64 %a to i32\n"
        " %s = add i32 %r, %t\n ret i32 %s\n}"
    )
    engine = Engine.load(compile_text(text, "f"), {"low": address, "value": 100})
    assert ctypes.CFUNCTYPE(ctypes.c_int)(engine.address("f"))() == 142
