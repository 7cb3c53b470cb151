"""Runs the journal's workload again and again, each time killed one call later: a program of test_journal_kills.

Usage: python -m tests.kit.journal.victim DIRECTORY FSYNC FAULT. For each call k there is then DIRECTORY/k with the
journal and DIRECTORY/k.told with what the victim was answered before it died. One process forks all victims,
because starting an interpreter takes longer than a life of theirs.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from headwater.journal import Fsync
from tests.kit.journal.faults import Fault, FaultyFiles, Ledger, Workload


class WrittenLedger(Ledger):
    """Writes each line past all buffers before the workload goes on."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def attempt(self, values: Sequence[bytes]) -> None:
        for value in values:
            self._tell("attempt", 0, value)

    def acknowledge(self, offset: int, value: bytes) -> None:
        self._tell("acknowledge", offset, value)

    def commit(self, position: int) -> None:
        self._tell("commit", position, b"")

    def _tell(self, what: str, number: int, value: bytes) -> None:
        os.write(self._descriptor, f"{what} {number} {value.hex()}\n".encode())


def read_ledger(path: Path) -> Ledger:
    """What a victim was answered."""
    ledger = Ledger()
    for line in path.read_text().splitlines():
        what, number, text = line.split(" ")
        value = bytes.fromhex(text)
        if what == "attempt":
            ledger.attempt([value])
        elif what == "acknowledge":
            ledger.acknowledge(int(number), value)
        else:
            ledger.commit(int(number))
    return ledger


def live_until(directory: Path, fsync: Fsync, fault: Fault, at: int) -> bool:
    """One life in a child process; whether it was cut short."""
    child = os.fork()
    if child == 0:
        try:
            ledger = WrittenLedger(directory / f"{at}.told")
            workload = Workload(directory / str(at), FaultyFiles(at, fault), ledger, fsync)
            workload.run()
            workload.close()
        except BaseException as error:  # noqa: BLE001 - a child must never return from here
            sys.stderr.write(f"call {at}: {error!r}\n")
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    if not killed and status != 0:
        raise SystemExit(f"the victim of call {at} ended with status {status}")
    return killed


def main(directory: str, fsync: str, fault: str) -> None:
    at = 0
    while live_until(Path(directory), Fsync(fsync), Fault[fault], at):
        at += 1
    sys.stdout.write(f"{at}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
