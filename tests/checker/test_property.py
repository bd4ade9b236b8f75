"""Random calls of random signatures of all kinds: the checker does what the oracle says.

A program needs no compilation, so these are many more calls than those of whole wrappers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from checker_calls import Checked
from draws import hypothesised
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from oracle.arguments import Argument
from oracle.calls import calls
from oracle.forge import Forged, forge
from oracle.judge import Accepted, judge
from oracle.leaves import Characters, Leaf, NotANumber, ObjectAt, SlotAt, StreamOf
from oracle.rounding import is_nan
from oracle.signatures import signatures
from oracle.wrong import Wrong
from wrapper_calls import Refused

BITS = {"float16": 16, "bfloat16": 16, "float32": 32, "float64": 64}
CALLS_PER_SIGNATURE = 4


def disagreement(
    checked: Checked, arguments: Sequence[Argument], wanted: Accepted | Wrong
) -> str | None:
    """What is wrong with the outcome of a call; None where it is as it should be."""
    forged = forge(arguments)
    try:
        seen = checked.run(ctypes.addressof(forged.args), len(arguments))
    except Refused as error:
        fits = isinstance(wanted, Wrong) and wanted.fits(error.kind, error.message)
        return None if fits else f"the call was refused with {error}"
    if isinstance(wanted, Wrong):
        return "the call was accepted"
    leaves = seen[: len(wanted.leaves)]
    for i, (got, leaf) in enumerate(zip(leaves, wanted.leaves, strict=True)):
        if not same(got % (1 << 64), leaf, forged):
            return f"leaf {i} is {got:#x}, not {leaf}"
    for got, symbol, leaf in zip(
        seen[len(leaves) :], checked.signature.symbols, wanted.symbols, strict=True
    ):
        if got % (1 << symbol.width) != leaf:
            return f"symbol {symbol} is {got}, not {leaf}"
    return None


def same(got: int, leaf: Leaf, forged: Forged) -> bool:
    """Whether a slot holds this leaf: a number may have its sign above its own bits."""
    match leaf:
        case int():
            signed = {leaf - (1 << bits) for bits in (8, 16, 32) if leaf >> (bits - 1) == 1}
            return got == leaf or got in {number % (1 << 64) for number in signed}
        case NotANumber(dtype):
            return is_nan(dtype, got)
        case Characters(data):
            return not data or ctypes.string_at(got, len(data)) == data
        case ObjectAt(path):
            return got == forged.slots[path].payload % (1 << 64)
        case SlotAt(path):
            return got == ctypes.addressof(forged.slots[path])
        case StreamOf():
            return True  # not the checker's


@settings(
    max_examples=max(250, settings.default.max_examples),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_the_checker_does_what_the_specs_say(data: st.DataObject) -> None:
    signature = data.draw(hypothesised(signatures()))
    checked = Checked(*signature.params, name=signature.name, requires=signature.requires)
    for _ in range(CALLS_PER_SIGNATURE):
        arguments = data.draw(hypothesised(calls(checked.signature)))
        wanted = judge(checked.signature, arguments)
        event("accepted" if isinstance(wanted, Accepted) else wanted.kind)
        problem = disagreement(checked, arguments, wanted)
        assert problem is None, f"{signature.text()}\n{arguments}\n{problem}\n{wanted}"
