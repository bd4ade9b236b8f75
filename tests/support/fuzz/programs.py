"""Random modules with kernels and a host function, compiled, interpreted and in plain Python.

Most programs are small: a hundred small ones find more than one large one in the same time.
"""

from __future__ import annotations

import importlib.util
import random
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import interpreter
import numpy as np
from agreement import interpreted, lowered, outcome, require_same
from draws import Seeded
from plain_python import examples
from random_programs import HOST, LONG, SHORT, Generated, execute, programs

import ferrule as fe
from ferrule import specs
from fuzz.campaigns import Case, Failure

UNIT: Final = "programs"
OPTIONS: Final = ("--target cpu", "--target cpu --opt-level 0")
_SIZES: Final = (1, 2, 2, 3, 4, 8)
"""Statements of a body."""
_LENGTHS: Final = (SHORT, SHORT, SHORT, SHORT, LONG)


def run(seed: int) -> Iterator[int | Failure]:
    """One program."""
    case = saved(*drawn(seed))
    problem = replay(case)
    yield Failure(case, problem) if problem else 1


def drawn(seed: int) -> tuple[Generated, str]:
    """The program of a seed, and options for it."""
    choose = random.Random(seed)
    size, lengths = choose.choice(_SIZES), choose.choice(_LENGTHS)
    generated = programs(size, lengths).of(Seeded(choose))
    return generated, choose.choice(OPTIONS)


def replay(case: Case) -> str | None:
    """What disagrees."""
    try:
        check(generated_of(case), case["options"])
    except AssertionError as error:
        return f"{case['source']}\n{error}"
    return None


def check(generated: Generated, options: str) -> None:
    """Runs a program in all ways.  Raises AssertionError where they disagree."""
    arguments = generated.arguments
    given: list[Any] = examples(*arguments)
    with tempfile.TemporaryDirectory() as folder:
        function = getattr(load(generated.source, Path(folder) / "program.py"), HOST)
        found = outcome(fe.compile(function, *given, options=options), arguments)
        form = lowered(function, *given).expanded()

    def plain(*args: Any) -> None:
        execute(generated.source, HOST, args, generated.dtypes)

    require_same(found, outcome(plain, arguments), "in the model")
    run_it = partial(interpreted, form, interpreter.downwards)
    require_same(found, outcome(run_it, arguments), "interpreted")


def load(source: str, path: Path) -> ModuleType:
    """A module with this source, in which `fe` is ferrule."""
    path.write_text(f"import ferrule as fe\n{source}", encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- cases as data ----


def saved(generated: Generated, options: str) -> Case:
    """A program as plain data."""
    return {
        "source": generated.source,
        "dtypes": [dtype.name for dtype in generated.dtypes],
        "arguments": [_written(argument) for argument in generated.arguments],
        "options": options,
    }


def generated_of(case: Case) -> Generated:
    """The program that was saved."""
    dtypes = [specs.as_dtype(name) for name in case["dtypes"]]
    return Generated(case["source"], dtypes, tuple(map(_read, case["arguments"])))


def _written(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return {
            "dtype": argument.dtype.name,
            "shape": list(argument.shape),
            "bytes": argument.tobytes().hex(),
        }
    return {"hex": argument.hex()} if isinstance(argument, float) else argument


def _read(argument: Any) -> Any:
    match argument:
        case {"hex": text}:
            return float.fromhex(text)
        case {"dtype": dtype, "shape": shape, "bytes": data}:
            flat = np.frombuffer(bytes.fromhex(data), dtype)
            return flat.reshape(shape).copy()
    return argument
