"""Random programs: compiled, interpreted and in plain Python they leave the same bits behind.

The plain Python is a model of the language's numbers, which knows nothing of its lowering.
"""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import interpreter
import numpy as np
import pytest
from agreement import Outcome, interpreted, lowered, outcome, require_same
from draws import hypothesised
from hypothesis import HealthCheck, Phase, event, given, note, settings
from hypothesis import strategies as st
from plain_python import examples
from random_programs import HOST, Generated, execute, programs

import ferrule as fe


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """New files: a program that is compiled must have a source."""
    folder = tmp_path_factory.mktemp("programs")
    return (folder / f"program_{i}.py" for i in itertools.count())


def load(source: str, path: Path) -> ModuleType:
    """A module with this source, in which `fe` is ferrule."""
    path.write_text(f"import ferrule as fe\n{source}", encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(generated: Generated, path: Path, options: str, fmad: bool | None = None) -> Outcome:
    """Runs a program in all ways; they agree, and it gives the outcome.

    The model rounds each operation, so what is contracted is compared with the others alone.
    """
    arguments = generated.arguments
    given: list[Any] = examples(*arguments)
    function = getattr(load(generated.source, path), HOST)
    found = outcome(fe.compile(function, *given, options=options), arguments)

    def plain(*args: Any) -> None:
        execute(generated.source, HOST, args, generated.dtypes)

    form = lowered(function, *given, fmad=fmad).expanded()
    if not form.program.contracted:
        require_same(found, outcome(plain, arguments), "in the model")
    run = partial(interpreted, form, interpreter.downwards)
    require_same(found, outcome(run, arguments), "interpreted")
    return found


SIZE = 4 if settings.default.max_examples <= 100 else 8
"""Of programs; they are larger at night."""


@settings(
    max_examples=settings.default.max_examples,
    deadline=None,
    phases=[phase for phase in Phase if phase is not Phase.explain],
    suppress_health_check=list(HealthCheck),
)
@given(generated=hypothesised(programs(SIZE)), optimised=st.booleans(), fmad=st.booleans())
def test_programs_mean_the_same_in_every_way(
    files: Iterator[Path], generated: Generated, optimised: bool, fmad: bool
) -> None:
    options = "--target cpu" if optimised else "--target cpu --opt-level 0"
    options += " --fmad" if fmad else ""
    note(f"{generated.source}\n{generated.arguments}\n{options}")
    found = check(generated, next(files), options, fmad)
    event("finished" if found.error is None else found.error[0])


# ---- the model itself ----

DIVISION = """
@fe.kernel
def kernel(out, x: fe.Int8):
    out[0], out[1] = x // 0, x % 0


@fe.jit
def program(out, x: fe.Int8):
    kernel(out, x).launch(grid=1, block=1)
    out[2] = 1
    out[3] = x // 0
"""
PROMOTION = """
@fe.jit
def program(out, x: fe.Int8):
    out[0] = x + 100
    out[1] = x + fe.Uint8(100)
    out[2] = x / 2 + fe.Int32(x) * 0.25
    out[3] = -(x > 0) + (x > 0) * 2
"""
CONTROL = """
@fe.jit
def program(out, x: fe.Int8):
    for i in range(x):
        if i == 3:
            continue
        out[0] += i
        if i > 4:
            break
    if x != 100 and not x < 0:
        out[1] = max(x, 200.5)
    else:
        out[1] = abs(x * 0 + -128)
"""


@pytest.mark.parametrize(
    ("source", "x", "wanted", "error"),
    [
        (DIVISION, 5, [0, 0, 1, 9], "ZeroDivisionError"),
        (PROMOTION, 100, [-56, 200, 75, 1], None),
        (CONTROL, 100, [21, -128, 9, 9], None),
        (CONTROL, 2, [10, 200.5, 9, 9], None),
    ],
)
def test_the_model_means_what_the_language_does(
    files: Iterator[Path], source: str, x: int, wanted: list[float], error: str | None
) -> None:
    dtypes, arguments = [fe.Float64, fe.Int8], (np.full(4, 9.0), x)
    found = outcome(lambda *args: execute(source, HOST, args, dtypes), arguments)
    assert found.arguments[0].tolist() == wanted
    assert error is None if found.error is None else found.error[0] == error
    check(Generated(source, dtypes, arguments), next(files), "--target cpu")
