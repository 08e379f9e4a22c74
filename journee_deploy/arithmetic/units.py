"""The unit of every probability: 2^-50. A distribution is a float64 vector of exact multiples of it that sums
to 1.
"""

from __future__ import annotations

UNITS = 1 << 50
SCALE = float(UNITS)
HALF = float(1 << 25)  # splits a count of units in a high and a low half, so that sums of counts stay exact
