"""Fuzzes for as long as one asks, or runs saved cases again.

    make fuzz MINUTES=30
    PYTHONPATH=compiler:runtime:specs:tests/support python -m fuzz --minutes 30 --jobs 2
    … python -m fuzz --minutes 30 --campaign pipelines   (needs MLIR)
    … python -m fuzz --minutes 30 --campaign recordings  (needs Triton and PyTorch)
    PYTHONPATH=compiler:runtime:specs:tests/support python -m fuzz replay fuzz-failures/*.json

Prints the first seed, then what passed.  Cases that fail are saved, each in a file; the exit status
is 1 where one did.  Without --seed a run begins with a seed of its own; with one it runs the same
cases again, in the same order.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

from fuzz.campaigns import ASKED, SHARES, Failure, campaign

SEEDS: Final = dict.fromkeys(
    (
        *("programs", "ptx", "constants", "cooperation", "neighbours", "phases"),
        *("files", "calls", "recordings"),
    ),
    100,
)
"""How many seeds a child runs; the next one begins with fresh memory."""
USUAL_SEEDS: Final = 20
GRACE: Final = 300.0
"""Seconds after which a child that should have ended hangs."""


@dataclass
class Tally:
    """What a campaign has come to."""

    unit: str
    passed: int = 0
    failures: list[Path] = field(default_factory=list)

    def text(self, name: str) -> str:
        """A line of the report."""
        return f"{name:>12}: {self.passed:>12,} {self.unit}, {len(self.failures)} disagreements"


@dataclass(frozen=True)
class Job:
    """One of several that share the seeds: it runs every `step`th, from `first`."""

    campaign: str
    first: int
    step: int
    until: float
    folder: Path


def main(arguments: Sequence[str]) -> int:
    """The exit status."""
    if arguments[:1] == ["replay"]:
        return max([0, *map(replay, map(Path, arguments[1:]))])
    given = _parsed(arguments)
    print(f"first seed {given.seed}, {given.minutes} minutes, {given.jobs} jobs", flush=True)
    known = {**SHARES, **ASKED}
    shares = {name: known[name] for name in given.campaign or SHARES}
    tallies = {}
    for name, share in shares.items():
        seconds = 60 * given.minutes * share / sum(shares.values())
        tallies[name] = tally = Tally(campaign(name).UNIT)
        until = time.monotonic() + seconds
        jobs = [
            Job(name, given.seed + each, given.jobs, until, given.save)
            for each in range(given.jobs)
        ]
        with ThreadPoolExecutor(given.jobs) as pool:
            list(pool.map(lambda job, tally=tally: run(job, tally), jobs))
        print(tally.text(name), flush=True)
    failures = [path for tally in tallies.values() for path in tally.failures]
    for path in failures:
        print(f"python -m fuzz replay {path}")
    return 1 if failures or not any(tally.passed for tally in tallies.values()) else 0


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m fuzz", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=int(time.time()) * 1000)
    parser.add_argument("--campaign", action="append", choices=[*SHARES, *ASKED])
    parser.add_argument("--save", type=Path, default=Path("fuzz-failures"), metavar="FOLDER")
    return parser.parse_args(arguments)


def run(job: Job, tally: Tally) -> None:
    """Children one after the other, until time is up."""
    seeds = SEEDS.get(job.campaign, USUAL_SEEDS)
    first = job.first
    while (left := job.until - time.monotonic()) > 0:
        last = _child(job, first, seeds, left, tally)
        first = last + job.step


def _child(job: Job, first: int, seeds: int, left: float, tally: Tally) -> int:
    """Runs a child; gives the last seed that it began."""
    command = [sys.executable, "-m", "fuzz.working", job.campaign]
    for name, value in (("first", first), ("step", job.step), ("seeds", seeds), ("seconds", left)):
        command += [f"--{name}", str(value)]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=paths
    )
    seed = first
    with ThreadPoolExecutor(2) as readers:
        said = readers.submit(child.stderr.read)  # type: ignore[union-attr]
        watch = readers.submit(_wait, child, left + GRACE)
        for line in _lines(child):
            seed = line.get("seed", seed)
            tally.passed += line.get("passed", 0)
            if "case" in line:
                tally.failures.append(save(job, line["case"], line["problem"]))
        if not watch.result():
            problem = f"exit status {child.returncode}\n{said.result()[-4000:]}"
            tally.failures.append(save(job, {"seed": seed}, problem))
    return seed


def _wait(child: subprocess.Popen[str], seconds: float) -> bool:
    """Waits for a child, and ends one that hangs; whether it ended well."""
    try:
        return child.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        child.kill()
        return False


def _lines(child: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert child.stdout is not None
    for line in child.stdout:
        yield json.loads(line)


def save(job: Job, case: dict[str, Any], problem: str) -> Path:
    """A file with a case, and what is wrong with it."""
    job.folder.mkdir(parents=True, exist_ok=True)
    path = next(
        path
        for number in count(1)
        if not (path := job.folder / f"{job.campaign}-{number}.json").exists()
    )
    saved = {"campaign": job.campaign, "case": case, "problem": problem}
    path.write_text(json.dumps(saved, indent=1), encoding="utf-8")
    print(f"{path}: {problem.strip().splitlines()[-1][:200]}", flush=True)
    return path


def replay(path: Path) -> int:
    """Runs a saved case again; 1 where it fails still."""
    saved = json.loads(path.read_text(encoding="utf-8"))
    chosen, case = campaign(saved["campaign"]), saved["case"]
    if set(case) == {"seed"}:
        failures = (found for found in chosen.run(case["seed"]) if isinstance(found, Failure))
        problem = next((found.problem for found in failures), None)
    else:
        problem = chosen.replay(case)
    print(f"{path}: {'passes' if problem is None else problem}")
    return 0 if problem is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
