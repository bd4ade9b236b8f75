"""Functions that go to other processes: by name if they have a module, else with their text."""

from __future__ import annotations

import concurrent.futures
import copy
import functools
import multiprocessing
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ferrule as fe

FACTOR = 3.0
STEPS = {"square": lambda v: v * v, "add": [functools.partial(lambda k, v: k + v, 10), np.float32]}


def deeper(v, n):
    return v if n == 0 else deeper(v, n - 1) + 1


@fe.kernel(fast_math=True)
def stepped(a: fe.Tensor, function: fe.Constexpr):
    i = fe.arch.thread_idx()[0]
    a[i] = function(a[i]) * FACTOR


def made(k):
    def helper(v):
        return deeper(v, 3) + k

    @fe.jit
    def inner(a: fe.Tensor, n: fe.Int32 = 2):
        """Adds."""
        stepped(a, helper).launch(grid=1, block=a.shape[0])
        a[0] = STEPS["square"](a[0]) + STEPS["add"][0](a[1]) + n

    return inner


@fe.jit
def of_module(a):
    a[0] = a[0] + FACTOR


def test_a_function_of_a_module_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(of_module)) is of_module
    assert len(pickle.dumps(of_module)) < 200
    assert copy.deepcopy(made) is made


def run(function: fe.JitFunction, a: np.ndarray) -> np.ndarray:
    function(a)
    return a


def test_any_other_goes_with_its_text_and_its_values() -> None:
    own = made(5)
    again = pickle.loads(pickle.dumps(own))
    third = pickle.loads(pickle.dumps(again))
    wanted = run(own, np.ones(2, np.float32))
    for each in (again, third):
        assert each is not own
        assert run(each, np.ones(2, np.float32)).tolist() == wanted.tolist()
        assert (each.__name__, each.__doc__) == ("inner", "Adds.")
        assert each.function.__qualname__ == "made.<locals>.inner"
        assert each.function.__globals__["stepped"].function.__ferrule_fast_math__


def test_the_right_one_of_two_lambdas_in_a_line() -> None:
    names = fe.from_source(
        "p, q = lambda v: v * 3, lambda v: v * 4\n"
        "def k(f):\n"
        "    @fe.jit\n"
        "    def run(a):\n"
        "        a[0] = f(a[0])\n"
        "    return run\n",
    )
    for name, wanted in (("p", 3), ("q", 4)):
        again = pickle.loads(pickle.dumps(names["k"](names[name])))
        assert run(again, np.ones(1, np.float32))[0] == wanted


PROGRAM = """
import pickle, sys
import numpy as np, ferrule as fe

FACTOR = 3.0


class Layer:
    def __init__(self, k):
        self.k = k

    @fe.jit
    def __call__(self, a):
        a[0] = a[0] * self.k


def helper(v):
    return v * FACTOR


@fe.jit
def main(a):
    helped(a)
    a[0] = a[0] + 1


@fe.jit
def helped(a):
    a[0] = helper(a[0])
"""


def child(data: bytes) -> str:
    """What a process without the program prints of a pickled function of an array."""
    code = (
        "import pickle, sys, numpy as np\n"
        "a = np.full(1, 2, np.float32)\n"
        "pickle.load(sys.stdin.buffer)(a)\n"
        "print(a[0])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=data, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


def dumped(folder: Path, line: str) -> bytes:
    """What a script writes whose last line is this."""
    script = folder / "script.py"
    script.write_text(f"{PROGRAM}\nsys.stdout.buffer.write({line})\n")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr.decode()
    script.unlink()
    return done.stdout


def test_a_script_gives_its_functions_to_a_process_without_it(tmp_path: Path) -> None:
    assert child(dumped(tmp_path, "pickle.dumps(main)")) == "7.0"


def test_cloudpickle_takes_methods_of_a_script(tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle")
    line = "__import__('cloudpickle').dumps(Layer(8))"
    assert child(dumped(tmp_path, line)) == "16.0"


def test_another_file_of_that_name_is_left_alone(tmp_path: Path) -> None:
    data = dumped(tmp_path, "pickle.dumps(main)")
    (tmp_path / "script.py").write_text("# another\n" * 40)
    assert child(data) == "7.0"


def test_a_pool_of_new_processes_takes_them() -> None:
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        found = pool.submit(run, made(5), np.ones(2, np.float32)).result(timeout=120)
    assert found.tolist() == run(made(5), np.ones(2, np.float32)).tolist()


PARALLEL = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor


def on_a_copy(function, a):
    a = a.copy()
    function(a)
    return a


def inside(a):
    return on_a_copy(main, a)


def spawned(function, *args):
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *args).result(timeout=120)


def of_dask(a):
    import dask
    from dask.distributed import Client, LocalCluster

    asked = dict(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None)
    with LocalCluster(**asked) as cluster, Client(cluster) as client:
        yield client.submit(on_a_copy, main, a).result()[0]
        yield client.submit(inside, a).result()[0]
        yield client.submit(on_a_copy, Layer(8).__call__, a).result()[0]
        yield dask.delayed(inside)(a).compute(scheduler="processes")[0]


if __name__ == "__main__":
    two = np.full(1, 2, np.float32)
"""


def printed(script: Path, text: str) -> str:
    """What a script with this text prints, without what others log."""
    script.write_text(text)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_spawned_processes_of_a_script(tmp_path: Path) -> None:
    lines = (
        "print(spawned(on_a_copy, main, two)[0], spawned(inside, two)[0])",
        "print(spawned(on_a_copy, Layer(8).__call__, two)[0])",
    )
    text = PROGRAM + PARALLEL + "".join(f"    {line}\n" for line in lines)
    assert printed(tmp_path / "script.py", text).split() == ["7.0", "7.0", "16.0"]


def test_dask_takes_them_by_themselves_and_inside_of_others(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    text = f"{PROGRAM}{PARALLEL}    print(*of_dask(two))\n"
    assert printed(tmp_path / "script.py", text) == "7.0 7.0 16.0 7.0"


NOTEBOOK = """
from IPython.core.interactiveshell import InteractiveShell

CELLS = (
    "import multiprocessing, numpy as np, ferrule as fe",
    "FACTOR = 3.0",
    "@fe.jit\\ndef scaled(a):\\n    return a[0] * FACTOR",
    "pool = multiprocessing.get_context('spawn').Pool(1)",
    "print(pool.apply(scaled, (np.full(1, 2, np.float32),)))",
    "FACTOR = 5.0",
    "print(pool.apply(scaled, (np.full(1, 2, np.float32),)))",
    "pool.terminate()",
)

if __name__ == "__main__":
    shell = InteractiveShell.instance()
    for cell in CELLS:
        shell.run_cell(cell, store_history=True).raise_error()
"""


def test_a_pool_of_a_notebook_gets_the_last_version(tmp_path: Path) -> None:
    pytest.importorskip("IPython", reason="IPython is not installed")
    assert printed(tmp_path / "notebook.py", NOTEBOOK).split() == ["6.0", "10.0"]


def test_a_function_without_a_text_says_so() -> None:
    names = {"fe": fe, "__name__": "__main__"}
    exec("@fe.jit\ndef f(a):\n    a[0] = 1.0\n", names)
    with pytest.raises(fe.CompileError, match="the source of 'f' cannot be found"):
        pickle.dumps(names["f"])
