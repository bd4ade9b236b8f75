"""A child process that runs the seeds of one campaign and says on its output how it gets on.

Lines of JSON: `{"seed": n}` before a seed is begun, so that whoever reads knows where it crashed,
then `{"passed": k}` and `{"case": …, "problem": …}`.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import json
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Any, Final

from fuzz.campaigns import Campaign, Failure, campaign

COLLECTED: Final = 10
"""After how many seeds garbage is collected."""
SETTLED: Final = COLLECTED
"""After how many seeds what is left is taken for lasting, as imported modules and tables are: no
later collection goes through it.  It was a sixth of the time of `ptx`."""


def main(arguments: list[str]) -> None:
    """Runs seeds until time is up."""
    parser = argparse.ArgumentParser()
    parser.add_argument("campaign")
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--step", type=int, required=True)
    parser.add_argument("--seeds", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    given = parser.parse_args(arguments)
    faulthandler.enable()
    gc.disable()  # a fifth of the time goes into it while programs are compiled
    out = sys.stdout
    sys.stdout = sys.stderr
    chosen, until = campaign(given.campaign), time.monotonic() + given.seconds
    for count in range(given.seeds):
        seed = given.first + count * given.step
        if time.monotonic() >= until:
            return
        for line in _lines(chosen, seed):
            out.write(json.dumps(line) + "\n")
            out.flush()
        if count % COLLECTED == COLLECTED - 1:
            gc.collect()
        if count == SETTLED - 1:
            gc.freeze()


def _lines(chosen: Campaign, seed: int) -> Iterator[dict[str, Any]]:
    yield {"seed": seed}
    passed = 0
    try:
        for found in chosen.run(seed):
            if isinstance(found, Failure):
                yield {"case": found.case, "problem": found.problem}
            else:
                passed += found
    except Exception:
        yield {"case": {"seed": seed}, "problem": traceback.format_exc()}
    yield {"passed": passed}


if __name__ == "__main__":
    main(sys.argv[1:])
