"""The page's own code is judged against what this package said: that must be what it says now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RECORD = Path(__file__).parents[2] / "web" / "tests" / "record.py"


def test_what_was_recorded_for_the_page_is_what_the_package_says() -> None:
    done = subprocess.run([sys.executable, str(RECORD), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
