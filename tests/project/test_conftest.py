"""The tests' own machinery: goldens compare and update, an empty run fails, needs skip."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

GOLDEN = "def test_{0}(golden):\n    golden('one.txt', 'text {0}')\n"

OUTCOMES = {
    "all skipped": ("import pytest\n@pytest.mark.skip\ndef test_it(): pass\n", 5),
    "none found": ("", 5),
    "one passed": ("def test_it(): pass\n", 0),
    "one failed": ("def test_it(): assert 0\n", 1),
}
"""A file of tests, and the exit status of a run of it."""

SERVER = """
import contextlib, io, json, os, sys
sys.modules["torch"] = None  # tvm-ffi imports it, for two seconds
import hypothesis, ptx_collector, pytest, second_pipeline
import ferrule.runtime.calls.function
for folder, file, options in json.loads(sys.argv[1]):
    source, target = os.pipe()
    if not os.fork():
        os.chdir(folder)
        with open("test_it.py", "w") as test:
            test.write(file)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            status = pytest.main(["-p", "no:cacheprovider", "--rootdir", folder, *options, folder])
        with open(target, "w") as answer:
            json.dump((int(status), said.getvalue()), answer)
        os._exit(0)
    os.close(target)
    with open(source) as answer:
        print(answer.read(), flush=True)
    os.wait()
"""
"""Importing pytest takes longer than a run, so that each is a fork of a process that has it."""


class Run(NamedTuple):
    """A run of pytest: one file of tests, and options."""

    test: str
    options: Sequence[str] = ()


class Done(NamedTuple):
    """What came of a run."""

    status: int
    said: str


def runs(folder: Path, root: Path, wanted: Mapping[str, Sequence[Run]]) -> dict[str, list[Done]]:
    """Runs pytest with the project's conftest, one after the other in a folder for each name.

    For the conftest they are folders of tests that compile nothing.
    """
    requests = []
    # Workers are new processes, too.
    hidden = folder / "hidden"
    hidden.mkdir()
    (hidden / "torch.py").write_text("raise ImportError('hidden')\n")
    for name, several in wanted.items():
        own = folder / name / "project"
        own.mkdir(parents=True)
        shutil.copy(root / "tests/conftest.py", own / "conftest.py")
        requests += [(str(own), run.test, list(run.options)) for run in several]
    done = subprocess.run(
        [sys.executable, "-c", SERVER, json.dumps(requests)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(hidden), *filter(None, sys.path)])},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    answers = (Done(*json.loads(line)) for line in done.stdout.splitlines())
    return {name: [next(answers) for _ in several] for name, several in wanted.items()}


def test_a_golden_is_written_only_on_demand(root: Path, tmp_path: Path) -> None:
    both = GOLDEN.format("a") + GOLDEN.format("b")
    asked = [
        Run(GOLDEN.format("a")), Run(GOLDEN.format("a"), ["--update-golden"]), Run(both, ["-v"]),
    ]  # fmt: skip
    missing, written, compared = runs(tmp_path, root, {"golden": asked})["golden"]
    assert missing.status == 1 and "--update-golden writes it" in missing.said
    assert written.status == 0
    assert (tmp_path / "golden/project/golden/one.txt").read_text() == "text a\n"
    assert "::test_a PASSED" in compared.said and "::test_b FAILED" in compared.said
    assert "-text a\n+text b\n" in compared.said  # a unified diff


def test_a_difference_is_shown_around_what_changed(golden: Any, tmp_path: Path) -> None:
    text = "\n".join(f"line {i}" for i in range(600))
    write, compare = (replace(golden, folder=tmp_path, update=each) for each in (True, False))
    write("text.txt", text)
    with pytest.raises(pytest.fail.Exception) as caught:
        compare("text.txt", text.replace("line 400", "other"))
    shown = str(caught.value)
    assert "-line 400\n+other\n" in shown and "line 300" not in shown
    with pytest.raises(pytest.fail.Exception, match="lines more"):
        compare("text.txt", "")


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["alone", "with workers"])
def test_a_run_without_tests_fails(root: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    if options:
        pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    asked = {name: [Run(test, options)] for name, (test, _) in OUTCOMES.items()}
    found = {name: done.status for name, [done] in runs(tmp_path, root, asked).items()}
    assert found == {name: wanted for name, (_, wanted) in OUTCOMES.items()}
