"""Random calls of random signatures of all kinds: a wrapper does what the oracle says.

Outcome, class of the error, its place and the leaves that the body sees are compared.
"""

from __future__ import annotations

import pytest
from draws import hypothesised
from hypothesis import HealthCheck, event, given, reject, settings
from hypothesis import strategies as st
from oracle.calls import calls
from oracle.judge import Accepted, judge
from oracle.signatures import signatures
from oracle.wrapped import Wrapped, supported_kinds, ways

from ferrule.specs import params as kinds

CALLS_PER_SIGNATURE = 8


TENSORS = frozenset({kinds.Tensor, kinds.Scalar})


def compare(data: st.DataObject, allowed: frozenset[type], hot: bool) -> None:
    """One random signature, called several times."""
    signature = data.draw(hypothesised(signatures(allowed)))
    try:
        wrapped = Wrapped(signature, hot)
    except NotImplementedError:
        reject()
    for _ in range(CALLS_PER_SIGNATURE):
        arguments = data.draw(hypothesised(calls(signature)))
        wanted = judge(signature, arguments)
        event("accepted" if isinstance(wanted, Accepted) else wanted.kind)
        problem = wrapped.disagreement(arguments, wanted)
        assert problem is None, f"{signature.text()}\n{arguments}\n{problem}\n{wanted}"


@pytest.mark.parametrize("hot", ways())
@settings(
    max_examples=max(150, settings.default.max_examples),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_wrappers_do_what_the_specs_say(hot: bool, data: st.DataObject) -> None:
    compare(data, supported_kinds(), hot)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_wrappers_of_tensors_and_numbers_alone(data: st.DataObject) -> None:
    """The commonest signatures, of which a draw from all kinds has few."""
    compare(data, TENSORS, hot=True)
