"""Running a command quietly: nothing is said for two seconds, then lines with the time; output on failure only."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

QUIET_SECONDS = 2.0
REPEAT_SECONDS = 10.0
TAIL_LINES = 30


@dataclass(frozen=True)
class CommandFailedError(Exception):
    """A command ended with another status than 0, or couldn't be started at all."""

    title: str
    output: str

    def __str__(self) -> str:
        tail = "\n".join(self.output.splitlines()[-TAIL_LINES:])
        return f"{self.title}: failed\n{tail}".rstrip()


def run(
    title: str,
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    keep_open: Sequence[int] = (),
) -> str:
    """Run to the end and return the output; `keep_open` are descriptors (a held lock) that the command inherits."""
    started = time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        try:
            process = subprocess.Popen(
                command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=keep_open
            )
        except OSError as error:
            raise CommandFailedError(title, str(error)) from error
        status = _wait(title, process, started)
        output.seek(0)
        text = output.read()
    if status:
        raise CommandFailedError(title, text)
    return text


def _wait(title: str, process: subprocess.Popen[bytes], started: float) -> int:
    if _ends_within(process, QUIET_SECONDS):
        return process.returncode
    print(f"{title} … {time.monotonic() - started:.0f} s", flush=True)
    while not _ends_within(process, REPEAT_SECONDS):
        print(f"{title} … {time.monotonic() - started:.0f} s", flush=True)
    verdict = "failed" if process.returncode else "done"
    print(f"{title}: {verdict} after {time.monotonic() - started:.0f} s", flush=True)
    return process.returncode


def _ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True
