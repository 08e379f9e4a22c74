"""What this machine computes with: the processor's name and how many threads it is worth to start."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from pathlib import Path

CPU_FACTS = Path("/proc/cpuinfo")
CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def processor_name(facts: Path = CPU_FACTS) -> str:
    """Model and instruction sets, as far as the platform tells: rows computed on two such processors may
    differ.
    """
    named = f"{platform.system()} {platform.machine()} {platform.processor()}"
    try:
        text = facts.read_text("utf-8", errors="replace")
    except OSError:
        return named
    lines = re.findall(r"^(?:vendor_id|model name|cpu family|model|stepping|flags|Features|CPU \w+)\s*:.*$", text, re.M)
    digest = hashlib.sha256("\n".join(sorted(set(lines))).encode()).hexdigest()
    return f"{named} {digest[:16]}"


def usable_threads(quota: Path = CPU_QUOTA) -> int:
    """Processors this process may use: its affinity, bounded by a container's quota. At least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        limit, period = quota.read_text("ascii").split()
        return max(1, min(allowed, int(limit) // int(period)))
    except (OSError, ValueError):  # no such file, or "max": no quota
        return max(1, allowed)
