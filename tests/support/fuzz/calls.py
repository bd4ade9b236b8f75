"""Random calls of random signatures: a wrapper does what the oracle says.

Every call goes through a wrapper with code for the usual calls and through one without.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, Final

import draws
from oracle import arguments as forms
from oracle.calls import calls
from oracle.judge import judge
from oracle.signatures import signatures
from oracle.wrapped import Wrapped, streams, supported_kinds

from ferrule.specs import Signature, parse_signature
from fuzz.campaigns import Case, Failure

UNIT: Final = "calls"
CALLS: Final = 1000
"""Of each signature: a wrapper takes as long to build as two hundred calls."""
WAYS: Final = (True, False)


def run(seed: int) -> Iterator[int | Failure]:
    """The calls of one signature."""
    source = draws.Seeded(random.Random(seed))
    try:
        signature = signatures(supported_kinds()).of(source)
        wrapped = [Wrapped(signature, hot) for hot in WAYS]
    except (draws.GivenUp, NotImplementedError):
        return
    with streams():
        for _ in range(CALLS):
            try:
                given = calls(signature).of(source)
            except draws.GivenUp:
                continue
            problem = _problem(signature, wrapped, given)
            if problem is not None:
                yield Failure({"signature": signature.text(), "arguments": repr(given)}, problem)
                return
            yield len(WAYS)


def replay(case: Case) -> str | None:
    """What is wrong with one call."""
    signature = parse_signature(case["signature"])
    names = {name: value for name, value in vars(forms).items() if isinstance(value, type)}
    odd = {"nan": float("nan"), "inf": float("inf")}
    given = eval(case["arguments"], {"__builtins__": {}, **names, **odd})
    return _problem(signature, [Wrapped(signature, hot) for hot in WAYS], given)


def _problem(signature: Signature, wrapped: Sequence[Wrapped], given: Sequence[Any]) -> str | None:
    wanted = judge(signature, given)
    for hot, each in zip(WAYS, wrapped, strict=True):
        problem = each.disagreement(given, wanted)
        if problem is not None:
            way = "with" if hot else "without"
            return f"{signature.text()}\n{given}\n{way} hot code: {problem}\nwanted {wanted}"
    return None
