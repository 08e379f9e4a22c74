"""What this machine computes with: the processor's name and how many threads it is worth to start."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from pathlib import Path

CPU_FACTS = Path("/proc/cpuinfo")
CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")
CPU_TWINS = Path("/sys/devices/system/cpu/smt/active")


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


def usable_threads(quota: Path = CPU_QUOTA, twins: Path = CPU_TWINS) -> int:
    """Cores this process may use, at least 1: its affinity, twins of one core counted once, bounded by a container's
    quota.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cores = (allowed + 1) // 2 if _read(twins) == "1" else allowed
    try:
        limit, period = _read(quota).split()
        return max(1, min(cores, int(limit) // int(period)))
    except ValueError:  # nothing there, or "max": no quota
        return cores


def _read(file: Path) -> str:
    try:
        return file.read_text("ascii").strip()
    except (OSError, ValueError):
        return ""
