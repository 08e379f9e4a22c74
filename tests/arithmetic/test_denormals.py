"""A processor that flushes subnormal numbers to zero is found out, by making it do so in a process of its own."""

from __future__ import annotations

import importlib.util
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from journee_deploy.arithmetic.vectors import check_denormals

WITH_TORCH = """
import torch
assert torch.set_flush_denormal(True), "not supported here"
"""

# The control register's bits 15 and 6: flush results, take operands as zero. A machine-code function of one argument:
# ldmxcsr [rdi]; ret.
WITH_THE_REGISTER = """
import ctypes, mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex("0fae17c3"))
load = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
state = ctypes.c_uint32(0x1F80 | {bits})
load(ctypes.addressof(state))
"""

CHECK = """
from journee_deploy.arithmetic.arena import LogitsError
from journee_deploy.arithmetic.vectors import check_denormals
check_denormals()
{flush}
try:
    check_denormals()
except LogitsError as error:
    print(error)
"""

ON_X86_LINUX = sys.platform == "linux" and platform.machine() == "x86_64"


def told(flush: str) -> str:
    script = CHECK.format(flush=flush)
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_healthy_processor_passes() -> None:
    check_denormals()
    assert told("") == ""


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_torchs_switch_is_found_out() -> None:
    assert "flushes denormal numbers to zero" in told(WITH_TORCH)


@pytest.mark.skipif(not ON_X86_LINUX, reason="sets the control register of x86-64 under Linux")
@pytest.mark.parametrize("bits", [0x8000, 0x0040, 0x8040], ids=["results", "operands", "both"])
def test_each_switch_of_the_processor_is_found_out(bits: int) -> None:
    assert "flushes denormal numbers to zero" in told(WITH_THE_REGISTER.format(bits=bits))
