"""A host that is a command: lines to its standard input, lines from its standard output, and a patience with it."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO

from journee_conformance.checker import HostError

LONGEST = 1 << 24  # bytes of one answer
TAIL = 12  # lines of standard error that a report shows
GRACE = 5.0  # seconds for the threads on a stopped host's pipes to end

Heard = bytes | None
"""A line, or None at the stream's end."""


class CommandHost:
    """Runs a command as the protocol says.

    command   the program and its arguments
    patience  seconds without an answer after which the host counts as hanging
    """

    def __init__(self, command: Sequence[str], patience: float = 60.0) -> None:
        self._command = list(command)
        self._patience = patience

    def answers(self, lines: Sequence[str]) -> Iterator[str]:
        """Every line that the host says; raises HostError when it dies, hangs or says what is no text."""
        process = self._start()
        said: queue.Queue[Heard] = queue.Queue()
        errors: deque[bytes] = deque(maxlen=TAIL)
        threads = [
            threading.Thread(target=_write, args=(process.stdin, lines), daemon=True),
            threading.Thread(target=_read, args=(process.stdout, said), daemon=True),
            threading.Thread(target=_keep, args=(process.stderr, errors), daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            while (line := self._next(said)) is not None:
                yield _text(line)
            self._ended(process, threads[2], errors)
        finally:
            _end(process, threads)

    def _start(self) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        try:
            return subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
        except OSError as error:
            raise HostError(f"the host {self._command[0]!r} can't be started: {error}") from None

    def _next(self, said: queue.Queue[Heard]) -> Heard:
        try:
            return said.get(timeout=self._patience)
        except queue.Empty:
            raise HostError(f"the host said nothing for {self._patience:g} seconds and was stopped") from None

    def _ended(self, process: subprocess.Popen[bytes], listener: threading.Thread, errors: deque[bytes]) -> None:
        """Its output has ended: so must the host, and well."""
        try:
            code = process.wait(timeout=self._patience)
        except subprocess.TimeoutExpired:
            raise HostError("the host closed its output and went on running; it was stopped") from None
        listener.join(GRACE)
        if code != 0:
            tail = b"".join(errors).decode(errors="replace").strip()
            raise HostError(f"the host ended with exit code {code}" + (f"; it said: {tail}" if tail else ""))


def _text(line: bytes) -> str:
    if len(line) > LONGEST:
        raise HostError(f"the host said a line of more than {LONGEST:,} bytes")
    try:
        return line.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise HostError(f"the host said what is no UTF-8: {error}") from None


def _write(stream: IO[bytes], lines: Sequence[str]) -> None:
    with suppress(BrokenPipeError), stream:  # a host that has gone: what it says, or doesn't, tells
        for line in lines:
            stream.write(line.encode() + b"\n")
            stream.flush()


def _read(stream: IO[bytes], said: queue.Queue[Heard]) -> None:
    with stream:
        while line := stream.readline(LONGEST + 2):
            said.put(line)
    said.put(None)


def _keep(stream: IO[bytes], errors: deque[bytes]) -> None:
    with stream:
        while line := stream.readline(4096):
            errors.append(line)


def _end(process: subprocess.Popen[bytes], threads: Sequence[threading.Thread]) -> None:
    """Stop the host and whatever it started, which ends the threads on its pipes too.

    A process that left the host's group and kept its pipes is not waited for: its threads end with this program.
    """
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for thread in threads:
        thread.join(GRACE)
