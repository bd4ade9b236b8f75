"""Whether this run of the tests is one at night."""

from __future__ import annotations

from hypothesis import settings


def is_nightly() -> bool:
    """True in a run that may take long."""
    return settings.default.max_examples > 100
