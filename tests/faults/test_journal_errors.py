"""Every system call of a journal fails once, in every way a kernel can: nothing acknowledged is lost or changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.journal import Fsync, Journal, JournalOptions, JournalReader, JournalRecord, MissingReason
from tests.kit.journal.faults import Fault, FaultyFiles, Ledger, Workload, check_law, read_all

# A fault that lasts for more calls also strikes what the journal does about it.
QUICK = [
    (Fsync.NONE, Fault.IO_ERROR, 3),
    (Fsync.NONE, Fault.LATE_ERROR, 2),
]
THOROUGH = [
    (fsync, fault, lasting)
    for fsync in (Fsync.NONE, Fsync.ALWAYS)
    for fault in (Fault.NO_ROOM, Fault.IO_ERROR, Fault.LATE_ERROR, Fault.SHORT, Fault.SHORT_THEN_NO_ROOM)
    for lasting in (1, 2, 3, 4, 5, 8)
    if (fsync, fault, lasting) not in QUICK
]
CASES = QUICK + [
    pytest.param(*case, marks=pytest.mark.slow if case[-1] == 1 else pytest.mark.long) for case in THOROUGH
]


pytestmark = pytest.mark.sample(3)


def count_calls(directory: Path, fsync: Fsync) -> int:
    files, ledger = FaultyFiles(), Ledger()
    workload = Workload(directory, files, ledger, fsync)
    workload.run()
    workload.close()
    assert not workload.errors
    assert len(ledger.acknowledged) == 17
    return files.calls


def run_with_fault(directory: Path, fsync: Fsync, files: FaultyFiles) -> None:
    """The workload with a fault, beside a reader that looks after each record; then all is well again."""
    ledger = Ledger()
    workload = Workload(directory, files, ledger, fsync)
    live = JournalReader.open(directory).tail(0)
    seen: list[JournalRecord] = []
    workload.after_each = lambda: seen.extend(read_all(live)[0])
    workload.run()
    files.heal()
    before, failed = len(ledger.acknowledged), len(workload.errors)
    workload.one(2)
    assert len(workload.errors) == failed, "an append after the fault failed"
    assert len(ledger.acknowledged) == before + 2
    workload.close()
    live.close()
    check_law(ledger, seen, begin=0)
    with Journal.open(directory, JournalOptions(fsync=Fsync.NONE)) as journal:
        assert journal.recovered is not None
        assert (journal.recovered.torn, journal.recovered.corrupt) == (0, 0), "something torn was left behind"
    with JournalReader.open(directory).tail(0) as tail:
        records, lost = read_all(tail)
    check_law(ledger, records, begin=ledger.committed)
    assert all(why is MissingReason.DROPPED and following <= ledger.committed for _, following, why in lost), lost
    assert seen[len(seen) - len(records) :] == records


@pytest.mark.parametrize(("fsync", "fault", "lasting"), CASES, ids=lambda each: getattr(each, "name", str(each)))
@pytest.mark.slow
def test_every_call_fails_once(tmp_path: Path, fsync: Fsync, fault: Fault, lasting: int) -> None:
    calls = count_calls(tmp_path / "sound", fsync)
    assert calls > 100
    for at in range(calls):
        files = FaultyFiles(at, fault, lasting)
        try:
            run_with_fault(tmp_path / str(at), fsync, files)
        except BaseException as error:
            error.args = (f"call {at} of {calls}, {fault}: {error}",)
            raise
    assert not open_below(tmp_path), "a descriptor was left open"


def open_below(directory: Path) -> list[Path]:
    """The files below it, one for each descriptor; what other tests' threads open and close meanwhile isn't counted."""
    return [each for each in map(_target, Path("/proc/self/fd").iterdir()) if each.is_relative_to(directory)]


def _target(descriptor: Path) -> Path:
    try:
        return descriptor.readlink()
    except FileNotFoundError:  # closed since it was listed
        return Path()
