"""Counts which programs for CuTe DSL run: `python benchmarks/cute_programs FOLDER [PATTERN...]`.

Each Python file and notebook below FOLDER whose path has one of the patterns in it runs in a
process of its own, with ferrule in the place of `cutlass` and an emulated GPU for "cuda".  One
that needs arguments to be small has them in a file of `--arguments`: lines of a path and its
arguments, with comments behind `#`.  `small.txt` beside this file has them for CuTe DSL 4.8.1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ENDS = {"tvm_ffi/error_reporting.py": "ValueError: Mismatched a.shape[0]"}
"""Programs that show an error, and how it begins: one that ends in it has passed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a program: a row for each cell; `seconds` is the time of its process."""

    path: str
    rows: tuple[dict[str, Any], ...]
    seconds: float


def _arguments(path: str | None) -> dict[str, list[str]]:
    if path is None:
        return {}
    texts = [line.partition("#")[0] for line in Path(path).read_text().splitlines()]
    lines = [text.split() for text in texts if text.strip()]
    return {line[0]: line[1:] for line in lines}


def _run(path: Path, name: str, arguments: list[str], options: argparse.Namespace) -> Outcome:
    environment = {**os.environ}
    if options.gpu != "none":
        environment["FERRULE_GPU"] = options.gpu
    if options.edits:
        environment["CUTE_PROGRAM_EDITS"] = Path(options.edits).read_text()
    logs = Path(options.logs)
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{name.replace('/', '+')}.log"
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, log.open("w") as out:
        result = Path(folder) / "result"
        environment["CUTE_PROGRAM_FOLDER"] = options.folder_of_runs or folder
        command = [sys.executable, str(HERE / "child.py"), str(result), str(path), *arguments]
        try:
            ended = subprocess.run(
                command, stdout=out, stderr=out, env=environment, timeout=options.timeout
            ).returncode
            last = {"error": f"the process ended with {ended}", "line": None}
        except subprocess.TimeoutExpired:
            last = {"error": f"took more than {options.timeout} s", "line": None}
        texts = result.read_text().splitlines() if result.exists() else []
    rows = [_as_meant(name, json.loads(text)) for text in texts]
    return Outcome(name, tuple(rows or [last]), time.perf_counter() - begin)


def _as_meant(name: str, row: dict[str, Any]) -> dict[str, Any]:
    """The row of a program, passed if it shows the error that it is there to show."""
    begins = [text for end, text in ENDS.items() if name.endswith(end)]
    if begins and str(row.get("error", "")).startswith(begins[0]):
        return {"cell": row["cell"], "passed": True}
    return row


def _show(outcome: Outcome) -> None:
    passed = sum("passed" in row for row in outcome.rows)
    print(f"{passed}/{len(outcome.rows)} {outcome.seconds:6.1f} s  {outcome.path}", flush=True)
    for row in outcome.rows:
        if "passed" not in row:
            first = " | ".join(str(row["error"]).splitlines()[:3])
            print(f"      cell {row.get('cell', 0)}, line {row['line']}: {first[:240]}", flush=True)


def main() -> None:
    """Runs them and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--arguments")
    parser.add_argument("--edits", help="a file of JSON: lists of a path, an old and a new text")
    parser.add_argument("--gpu", default="emulated:sm_90a", help="or none")
    parser.add_argument("--logs", default="cute_programs.logs")
    parser.add_argument("--folder-of-runs", help="where they run, instead of a new folder each")
    parser.add_argument("--timeout", type=float, default=300)
    options = parser.parse_intermixed_args()
    known = _arguments(options.arguments)
    found = [*options.folder.rglob("*.py"), *options.folder.rglob("*.ipynb")]
    outcomes = []
    for path in sorted(found):
        name = str(path.relative_to(options.folder))
        if options.patterns and not any(each in name for each in options.patterns):
            continue
        outcomes.append(_run(path.resolve(), name, known.get(name, []), options))
        _show(outcomes[-1])
    whole = sum(all("passed" in row for row in each.rows) for each in outcomes)
    print(f"{whole} of {len(outcomes)} run whole")


if __name__ == "__main__":
    main()
