"""Profiles of the property tests: `--hypothesis-profile=nightly` draws a hundred thousand calls."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]

settings.register_profile("nightly", max_examples=12_500, deadline=None)
