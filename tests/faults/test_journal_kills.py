"""A writer is killed before, within and after every one of its system calls; the next one goes on behind it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.journal import Fsync, Journal, JournalOptions, JournalReader, JournalRecord, MissingReason
from tests.kit.journal.faults import Fault, FaultyFiles, Ledger, check_law, read_all
from tests.kit.journal.victim import read_ledger

pytestmark = pytest.mark.sample(2)
OPTIONS = JournalOptions(fsync=Fsync.NONE, segment_bytes=420, max_bytes=None, reserve_bytes=0)
QUICK = [(Fsync.NONE, Fault.KILL_WITHIN)]
THOROUGH = [
    (fsync, fault)
    for fsync in (Fsync.NONE, Fsync.ALWAYS)
    for fault in (Fault.KILL_BEFORE, Fault.KILL_WITHIN, Fault.KILL_AFTER)
    if (fsync, fault) not in QUICK
]
CASES = QUICK + [pytest.param(*case, marks=pytest.mark.slow) for case in THOROUGH]


def kill_at_every_call(directory: Path, fsync: Fsync, fault: Fault) -> int:
    command = [sys.executable, "-m", "tests.kit.journal.victim", str(directory), fsync.value, fault.name]
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def check_leftover(directory: Path, ledger: Ledger) -> None:
    """A reader that was there before the recovery, the journal opened by the next writer, and one after it."""
    with JournalReader.open(directory).tail(0) as live:
        seen, _ = read_all(live)
        with Journal.open(directory, OPTIONS, files=FaultyFiles()) as journal:
            assert journal.recovered is None or journal.recovered.corrupt == 0
            ledger.attempt([b"next"])
            ledger.acknowledge(journal.append(b"next"), b"next")
            with journal.cursor("reader") as cursor:
                assert cursor.committed <= ledger.committed
                rest, lost = read_all(cursor)
                assert not lost
                check_law(ledger, rest, begin=cursor.committed)
        seen += read_all(live)[0]
    check_law(ledger, seen, begin=ledger.committed)
    with JournalReader.open(directory).tail(0) as tail:
        records, lost = read_all(tail)
    check_law(ledger, records, begin=ledger.committed)
    assert all(why is MissingReason.DROPPED and following <= ledger.committed for _, following, why in lost), lost
    assert seen[len(seen) - len(records) :] == records
    assert not list(directory.glob("*.new"))


@pytest.mark.parametrize(("fsync", "fault"), CASES, ids=lambda each: each.name)
@pytest.mark.slow
def test_a_writer_killed_at_every_call(tmp_path: Path, fsync: Fsync, fault: Fault) -> None:
    calls = kill_at_every_call(tmp_path, fsync, fault)
    assert calls > 100
    most: list[JournalRecord] = []
    for at in range(calls):
        ledger = read_ledger(tmp_path / f"{at}.told")
        try:
            check_leftover(tmp_path / str(at), ledger)
        except BaseException as error:
            error.args = (f"killed at call {at} of {calls}: {error}",)
            raise
        with JournalReader.open(tmp_path / str(at)).tail(0) as tail:
            most = max(most, read_all(tail)[0], key=len)
    assert len(most) > 3, "the workload got nowhere"
