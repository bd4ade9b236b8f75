"""The fuzzer: what fails is counted, saved and found again; a child that crashes is a finding."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from draws import GivenUp, Seeded, Source, booleans, integers, permutations, seeded
from fuzz import __main__ as fuzz
from fuzz import calls, programs, working
from fuzz.campaigns import SHARES, Failure, campaign
from mlir_functions import needs_mlir
from oracle.wrapped import Wrapped

ROOT = Path(__file__).parents[2]


def test_every_campaign_passes_its_first_seeds() -> None:
    for name in SHARES.keys() - {"ptx"}:  # that has a GPU, which this process may not
        found = list(campaign(name).run(1))
        assert found and not [each for each in found if isinstance(each, Failure)], name


def test_a_seed_makes_one_case() -> None:
    first, again = (programs.programs(4).of(_source(7)) for _ in range(2))
    assert first.source == again.source
    assert programs.generated_of(_through_json(programs.saved(first, ""))).source == first.source


def test_arguments_are_saved_whole() -> None:
    generated = programs.programs(2).of(_source(3))
    read = programs.generated_of(_through_json(programs.saved(generated, "")))
    assert repr(read.arguments) == repr(generated.arguments)
    assert read.dtypes == generated.dtypes


def test_a_disagreement_is_saved_and_replayed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    right = Wrapped.disagreement
    with monkeypatch.context() as patch:
        patch.setattr(Wrapped, "disagreement", lambda *_: "it differs")
        (failure,) = (each for each in calls.run(11) if isinstance(each, Failure))
        path = fuzz.save(_job(tmp_path, "calls"), failure.case, failure.problem)
        assert fuzz.main(["replay", str(path)]) == 1
    assert Wrapped.disagreement is right
    assert fuzz.main(["replay", str(path)]) == 0


def test_an_exception_is_a_finding_of_its_seed() -> None:
    class Broken:
        UNIT = "programs"

        def run(self, seed: int) -> Iterator[int | Failure]:
            yield 1
            raise KeyError(seed)

        def replay(self, case: dict[str, Any]) -> str | None:
            return None

    begun, failed, passed = working._lines(Broken(), 5)
    assert begun == {"seed": 5} and passed == {"passed": 1}
    assert failed["case"] == {"seed": 5} and "KeyError: 5" in failed["problem"]


def test_a_child_that_ends_badly_is_a_finding(tmp_path: Path) -> None:
    tally = fuzz.Tally("programs")
    fuzz._child(_job(tmp_path, "none of them"), 3, 1, 60.0, tally)
    (path,) = tally.failures
    saved = json.loads(path.read_text(encoding="utf-8"))
    assert saved["case"] == {"seed": 3}
    assert "exit status 1" in saved["problem"] and "none of them" in saved["problem"]


def test_from_the_command_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fuzz", "--minutes", "0.02", "--jobs", "1", "--seed", "3"]
    command += ["--campaign", "calls", "--campaign", "ptx", "--save", str(tmp_path / "failures")]
    path = os.pathsep.join(str(ROOT / each) for each in ("compiler", "runtime", "specs"))
    path += os.pathsep + str(ROOT / "tests/support")
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("first seed 3, 0.02 minutes, 1 jobs\n")
    assert "calls, 0 disagreements" in done.stdout
    assert re.search(r"ptx: +[1-9]\d* programs, 0 disagreements", done.stdout)
    assert not (tmp_path / "failures").exists()


@needs_mlir
def test_both_pipelines_are_compared_where_that_is_asked_for(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fuzz", "--minutes", "0.05", "--jobs", "1", "--seed", "2"]
    command += ["--campaign", "pipelines", "--save", str(tmp_path / "failures")]
    path = os.pathsep.join(filter(None, (*sys.path, str(ROOT / "tests/support"))))
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"pipelines: +[1-9]\d* programs through MLIR, 0 dis", done.stdout)


@pytest.mark.parametrize(("low", "high"), [(0, 3), (-(1 << 63), (1 << 63) - 1), (-128, 127)])
def test_integers_stay_within_their_bounds(low: int, high: int) -> None:
    drawn = [seeded(integers(low, high), seed) for seed in range(300)]
    assert min(drawn) >= low and max(drawn) <= high
    assert len(set(drawn)) > min(3, high - low)


def test_draws() -> None:
    assert sorted(seeded(permutations("abcd"), 1)) == list("abcd")
    with pytest.raises(GivenUp):
        seeded(booleans().filter(lambda _: False), 1)


def _source(seed: int) -> Source:
    return Seeded(random.Random(seed))


def _through_json(case: dict[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(json.dumps(case))
    return read


def _job(folder: Path, name: str) -> fuzz.Job:
    return fuzz.Job(name, 0, 1, time.monotonic() + 60, folder)
