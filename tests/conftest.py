"""Hypothesis draws the same examples everywhere and sets no clock: a failure here is a failure there."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci")
