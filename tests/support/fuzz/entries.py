"""Random calls from Python: the direct entry does what the slow path does.

Values of all sorts, right and wrong ones, for every kind of parameter.  A case is named by the
places of its values in a list, which the next version may order otherwise: so it has their texts.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from entry_pairs import GROUPS, VALUES, both, good

from fuzz.campaigns import Case, Failure

UNIT: Final = "calls"
CALLS: Final = 500


def run(seed: int) -> Iterator[int | Failure]:
    """Calls of one function."""
    choose = random.Random(seed)
    names = choose.choice(GROUPS)
    fitting = [good(name) for name in names]
    for _ in range(CALLS):
        places = [
            choose.choice(each) if choose.random() < 0.8 else choose.randrange(len(VALUES))
            for each in fitting
        ]
        case = {"names": list(names), "places": places}
        problem = replay(case)
        if problem is not None:
            yield Failure({**case, "values": [repr(VALUES[i]) for i in places]}, problem)
            return
        yield 2


def replay(case: Case) -> str | None:
    """What the two paths do otherwise."""
    names, values = tuple(case["names"]), [VALUES[place] for place in case["places"]]
    entry, slow = both(names, values)
    return None if entry == slow else f"{names} of {values}\nentry: {entry}\nslow path: {slow}"
