"""All that can be learnt on a machine with a GPU, by one command, in one file.

    python tests/gpu/report.py [--compile-only] [--quick] [--output gpu_report.md] [STEP …]

It needs CPython 3.10 or later, llvmlite and apache-tvm-ffi, no install of ferrule and no network.
What else is installed is used: pytest with hypothesis and NumPy for the tests, PyTorch, Triton and
others to compare with; what is missing is said.  The steps are in the order of their worth, and the
file is written after each, so that time that runs out loses the last one alone:

    alone       a few kernels, with nothing but ferrule
    launching   tests of launches, examples and frontends
    benchmark   benchmarks/gpu.py
    language    the tests of the language

Without a GPU each step says so.  --compile-only compiles what else would run, --quick lets the
benchmark only try what it would measure.  The exit status is 1 where a step failed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests" / "gpu"
NEEDED = ("pytest", "hypothesis", "numpy")
LIMIT = 3600


def alone(given: argparse.Namespace) -> list[str]:
    """What Python is given to run a step; so are the other three."""
    return [str(TESTS / "alone.py"), *_compile_only(given)]


def launching(given: argparse.Namespace) -> list[str]:
    """See `alone`."""
    return _tests(given, str(TESTS), f"--ignore={TESTS / 'test_language.py'}")


def benchmark(given: argparse.Namespace) -> list[str]:
    """See `alone`."""
    quick = given.quick or given.compile_only
    figures = given.output.with_suffix(".json").resolve()
    command = [str(ROOT / "benchmarks" / "gpu.py"), "--json", str(figures)]
    return [*command, *(["--quick"] if quick else [])]


def language(given: argparse.Namespace) -> list[str]:
    """See `alone`."""
    return _tests(given, str(TESTS / "test_language.py"))


STEPS: dict[str, Callable[[argparse.Namespace], list[str]]] = {
    step.__name__: step for step in (alone, launching, benchmark, language)
}


def _tests(given: argparse.Namespace, *where: str) -> list[str]:
    options = ["-q", "-rsfEP", "--tb=short", "-p", "no:cacheprovider"]
    return ["-m", "pytest", *where, *options, *_compile_only(given)]


def _compile_only(given: argparse.Namespace) -> list[str]:
    return ["--compile-only"] if given.compile_only else []


def missing(command: Sequence[str]) -> str | None:
    """Why a step cannot run here."""
    if "pytest" not in command:
        return None
    lacks = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    return f"needs {', '.join(lacks)}, which is not installed" if lacks else None


def run(command: Sequence[str]) -> tuple[str, str]:
    """How a step ended, and what it said."""
    roots = [str(ROOT / name) for name in ("compiler", "runtime", "specs", "tests/support")]
    start, path = perf_counter(), os.pathsep.join([*roots, os.environ.get("PYTHONPATH", "")])
    try:
        done = subprocess.run(
            [sys.executable, *command],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return f"cut off after {LIMIT} s", (error.output or b"").decode(errors="replace")
    ended = "done" if done.returncode == 0 else f"FAILED with status {done.returncode}"
    text = done.stdout.decode(errors="replace")
    return f"{ended} in {perf_counter() - start:.0f} s", text.replace(f"{ROOT}/", "")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the steps; the exit status."""
    parser = argparse.ArgumentParser(description="What a machine with a GPU says of ferrule")
    parser.add_argument("--compile-only", action="store_true", help="compile what else would run")
    parser.add_argument("--quick", action="store_true", help="try the benchmark, measure nothing")
    parser.add_argument("--output", type=Path, default=Path("gpu_report.md"), help="the file")
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"of {', '.join(STEPS)}; else all")
    given = parser.parse_args(argv)
    for step in given.steps:
        if step not in STEPS:
            parser.error(f"{step!r} is no step; wanted {', '.join(STEPS)}")
    failed = False
    with given.output.open("w", encoding="utf-8") as file:
        file.write(f"# ferrule on a GPU\n\nPython {sys.version.split()[0]}\n")
        for step in given.steps or STEPS:
            command = STEPS[step](given)
            why = missing(command)
            print(f"{step} …", flush=True)
            ended, said = (f"left out: {why}", "") if why else run(command)
            failed = failed or ended.startswith(("FAILED", "cut off"))
            print(f"{step}: {ended}", flush=True)
            file.write(f"\n## {step}: {ended}\n\n```text\n{said.rstrip()}\n```\n")
            file.flush()
    print(f"all of it is in {given.output}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
