"""FERRULE_JIT_INFO: what profilers and debuggers learn of code in a process."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import ferrule as fe
from ferrule.runtime.linking import jitinfo

PROGRAM = """
import os

import numpy as np

import ferrule as fe


@fe.kernel
def doubled_kernel(a: fe.Tensor):
    i = fe.arch.thread_idx()[0]
    a[i] = a[i] * 2


@fe.jit
def doubled(a: fe.Tensor):
    doubled_kernel(a).launch(grid=1, block=64)


a = np.ones(64, np.float32)
options = "--target cpu --generate-line-info --no-cache"
compiled = fe.compile(doubled, fe.make_fake_compact_tensor(fe.Float32, (64,)), options=options)
compiled(a)
assert (a == 2).all()
print(os.getpid())
"""
LINE = 1 + PROGRAM[: PROGRAM.index("a[i] = ")].count("\n")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def run(program: Path, kinds: str, after: str = "") -> str:
    """What the process with this code printed."""
    program.write_text(PROGRAM + after)
    more = {"FERRULE_JIT_INFO": kinds, "JITDUMPDIR": str(program.parent)}
    done = subprocess.run(
        [sys.executable, str(program)],
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_map_names_functions_and_goes_with_a_fork(program):
    forked = "pid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\nelse:\n    print(os.getpid())\n"
    forked += "    fe.compile(doubled, a, options='--target cpu --no-cache')(a)\n"
    pids = run(program, "perfmap", forked).split()
    names = []
    for pid in dict.fromkeys(pids):
        path = Path("/", "tmp", f"perf-{pid}.map")
        lines = [line.split() for line in path.read_text().splitlines()]
        path.unlink()
        assert all(int(at, 16) > 4096 and int(size, 16) > 0 for at, size, _ in lines)
        names.append([name for _, _, name in lines])
    (parent, child) = names
    assert {"__tvm_ffi_doubled", "blocks_doubled_kernel"} <= set(parent)
    assert child[: len(parent)] == parent and child.count("blocks_doubled_kernel") == 2


def records(data: bytes) -> list[tuple[int, bytes]]:
    """The kinds and contents of the records of a dump."""
    found, at = [], 40
    while at < len(data):
        kind, size, _ = struct.unpack_from("<IIQ", data, at)
        found.append((kind, data[at + 16 : at + size]))
        at += size
    return found


def test_the_dump_has_code_and_lines(program):
    pid = int(run(program, "jitdump"))
    data = (program.parent / f"jit-{pid}.dump").read_bytes()
    magic, version, size, _, _, written, _, flags = struct.unpack_from("<IIIIIIQQ", data)
    assert (magic, version, size, written, flags) == (0x4A695444, 1, 40, pid, 0)
    known: dict[str, int] = {}
    lines: dict[int, list[tuple[int, str]]] = {}
    for kind, body in records(data):
        if kind == 0:
            *_, address, length, _ = struct.unpack_from("<IIQQQQ", body)
            name, _, code = body[40:].partition(b"\0")
            assert len(code) == length
            known[name.decode()] = address
            continue
        assert kind == 2
        address, count = struct.unpack_from("<QQ", body)
        at = 16
        for _ in range(count):
            place, line, _ = struct.unpack_from("<QII", body, at)
            end = body.index(b"\0", at + 16)
            lines.setdefault(address, []).append((line, body[at + 16 : end].decode()))
            assert place >= address
            at = end + 1
    own = lines[known["blocks_doubled_kernel"]]
    assert (LINE, str(program)) in own
    assert "__tvm_ffi_doubled" in known


@pytest.mark.skipif(shutil.which("perf") is None, reason="there is no perf")
def test_perf_makes_objects_of_the_dump(program):
    import re

    found = program.parent / "perf.data"
    before = ["perf", "record", "-q", "-k", "1", "-e", "cpu-clock", "-o", str(found)]
    more = {"FERRULE_JIT_INFO": "jitdump", "JITDUMPDIR": str(program.parent)}
    command = [*before, sys.executable, str(program)]
    env = {**os.environ, **more}
    recorded = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if not found.exists() or not re.fullmatch(r"\d+\n", recorded.stdout):
        pytest.skip(f"perf cannot record here: {recorded.stderr[-300:]}")
    inject = ["perf", "inject", "--jit", "-i", str(found), "-o", str(found) + ".jit"]
    subprocess.run(inject, check=True, capture_output=True)
    made = list(program.parent.glob("jitted-*.so"))
    assert any(b"blocks_doubled_kernel" in path.read_bytes() for path in made)


@pytest.mark.skipif(shutil.which("gdb") is None, reason="there is no gdb")
def test_gdb_stops_in_a_line_of_a_kernel(program):
    words = (
        *("set breakpoint pending on", "break blocks_doubled_kernel"),
        *("run", "backtrace", "delete", "continue"),
    )
    commands = program.with_suffix(".gdb")
    commands.write_text("\n".join(words))
    done = subprocess.run(
        ["gdb", "-nx", "-batch", "-x", str(commands), "--args", sys.executable, str(program)],
        env={**os.environ, "FERRULE_JIT_INFO": "gdb"},
        capture_output=True,
        text=True,
        check=False,
        cwd=program.parent,
    )
    if "ptrace" in done.stderr:
        pytest.skip("gdb may not start processes here")
    assert "blocks_doubled_kernel () at program.py:" in done.stdout, done.stdout + done.stderr
    assert "ferrule_body () at program.py:" in done.stdout
    assert "exited normally" in done.stdout


def test_unknown_words_are_refused(monkeypatch):
    monkeypatch.setenv("FERRULE_JIT_INFO", "perfmap,gbd")
    with pytest.raises(ValueError, match=r"'gbd' is unknown\n  expected: perfmap, jitdump or gdb"):
        jitinfo.wanted()
    monkeypatch.setenv("FERRULE_JIT_INFO", "perfmap, gdb")
    with pytest.raises(ValueError, match="gdb alone, or perfmap and jitdump"):
        jitinfo.wanted()


@fe.jit
def added(a: fe.Tensor):
    a[0] += 1


def test_lines_are_in_objects_and_mlir_refuses_them(tmp_path):
    one = fe.make_fake_compact_tensor(fe.Float32, (1,))
    options = "--target cpu --generate-line-info"
    fe.compile(added, one, options=options).export_to_c(tmp_path / "lines.o")
    fe.compile(added, one, options="--target cpu").export_to_c(tmp_path / "none.o")
    assert b".debug_line" in (tmp_path / "lines.o").read_bytes()
    assert b".debug_line" not in (tmp_path / "none.o").read_bytes()
    with pytest.raises(fe.CompileError, match="--generate-line-info with --pipeline mlir"):
        fe.compile(added, one, options=f"{options} --pipeline mlir")
