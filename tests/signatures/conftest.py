"""Profiles of the property tests: `--hypothesis-profile=nightly` draws a hundred thousand calls."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("nightly", max_examples=6_500, deadline=None)
