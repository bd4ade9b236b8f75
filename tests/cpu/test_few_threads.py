"""Launches where threads cannot be made: they run with fewer, and the process goes on."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from ctypes.util import find_library
from pathlib import Path

import pytest

_GUARD = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
typedef int (*create_t)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
struct start { void *(*function)(void *); void *argument; };
static int alive;
static void *run(void *given) {
  struct start start = *(struct start *)given;
  free(given);
  void *result = start.function(start.argument);
  __sync_fetch_and_sub(&alive, 1);
  return result;
}
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                   void *argument) {
  create_t real = (create_t)dlsym(RTLD_NEXT, "pthread_create");
  const char *most = getenv("MOST_THREADS");
  if (most && __sync_add_and_fetch(&alive, 1) > atoi(most)) {
    __sync_fetch_and_sub(&alive, 1);
    return EAGAIN;
  }
  struct start *start = malloc(sizeof *start);
  start->function = function;
  start->argument = argument;
  return real(thread, attributes, run, start);
}
"""

_PROGRAM = """
import os, sys, threading, time
sys.modules["torch"] = None
import numpy as np
import ferrule as fe

@fe.kernel
def device_visit(seen: fe.Tensor, rounds: fe.Int64):
    i = fe.arch.block_idx()[0]
    value = seen[i]
    for _ in range(rounds):
        value = value * 3 + 1
    seen[i] = value

@fe.jit
def visit(seen: fe.Tensor, rounds: fe.Int64):
    device_visit(seen, rounds).launch(grid=(seen.shape[0],), block=(1,))

vector = fe.make_fake_compact_tensor(fe.Int64, (fe.sym_int(),))
compiled = fe.compile(visit, vector, fe.Int64, options="--target cpu")
wanted = 0
for _ in range(300):
    wanted = (wanted * 3 + 1) % (1 << 64)
def launch():
    for _ in range(3):
        seen = np.zeros(20_000, np.int64)
        compiled(seen, 300)
        assert (seen.view(np.uint64) == wanted).all()
{body}
print(len(os.listdir("/proc/self/task")))
"""

needs_runtime = pytest.mark.skipif(
    find_library("gomp") is None, reason="needs GNU's OpenMP runtime, libgomp"
)


def run(folder: Path, before: list[str], body: str = "launch()", **more: str) -> int:
    """How many threads a program has in the end that launches."""
    program = folder / "program.py"
    program.write_text(_PROGRAM.format(body=body))
    own = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"}
    environment = os.environ | own | {"OMP_NUM_THREADS": "4"} | more
    command = [*before, sys.executable, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return int(done.stdout)


@pytest.fixture
def guard(tmp_path: Path) -> str:
    """A library that lets a process have so many threads more as MOST_THREADS says."""
    source, library = tmp_path / "guard.c", tmp_path / "guard.so"
    source.write_text(_GUARD)
    compiler = shutil.which("cc") or shutil.which("gcc") or "cc"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True
    )
    return str(library)


@needs_runtime
@pytest.mark.needs_cc
@pytest.mark.parametrize(("most", "threads"), [(0, 1), (2, 3), (9, 4)])
def test_a_team_has_as_many_threads_as_can_be_made(
    guard: str, tmp_path: Path, most: int, threads: int
) -> None:
    assert run(tmp_path, [], LD_PRELOAD=guard, MOST_THREADS=str(most)) == threads


@needs_runtime
@pytest.mark.needs_cc
def test_each_calling_thread_has_its_team_tried(guard: str, tmp_path: Path) -> None:
    """The first team takes three of four threads; the calling thread of the second one the last."""
    body = """
launch()
thread = threading.Thread(target=launch)
thread.start()
thread.join()
while os.path.exists(f"/proc/self/task/{thread.native_id}"):  # joined a little before its end
    time.sleep(0.01)
"""
    assert run(tmp_path, [], body, LD_PRELOAD=guard, MOST_THREADS="4") == 4


@needs_runtime
def test_little_address_space_is_no_end_of_the_process(tmp_path: Path) -> None:
    """Sixty-four stacks of a GiB each do not fit."""
    if shutil.which("prlimit") is None:
        pytest.skip("needs prlimit")
    stack = 1 << 30
    if resource.getrlimit(resource.RLIMIT_AS)[1] not in (resource.RLIM_INFINITY,):
        pytest.skip("the address space is limited already")
    limits = ["prlimit", f"--as={8 << 30}", f"--stack={stack}"]
    assert run(tmp_path, limits, OMP_NUM_THREADS="64", OMP_STACKSIZE="1G") < 16
