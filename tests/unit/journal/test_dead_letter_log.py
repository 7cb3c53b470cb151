"""Dead letters in a local log: one that is removed is gone, and one that stays is there at every moment.

Other tests append letters; none removes some of them while others are appended.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.journal import DeadLetterLog, GroupMember, JournalEntry, JournalRecord, LocalLog, LockedError


def values(log: DeadLetterLog) -> list[bytes]:
    return sorted(each.value for each in log.letters())


def keep(log: DeadLetterLog, *names: bytes) -> None:
    log.keep((JournalEntry(name, b"key", (("h", b"1"),)), "too large") for name in names)


def test_those_that_are_removed_are_gone_and_the_others_stay_as_they_were(tmp_path: Path) -> None:
    log = DeadLetterLog(tmp_path / "a")
    keep(log, b"1", b"2", b"3")
    log.remove(lambda each: each.value == b"2")
    assert values(log) == [b"1", b"3"]
    assert {(each.key, each.headers) for each in log.letters()} == {(b"key", (("h", b"1"), ("refused", b"too large")))}
    keep(log, b"4")
    log.remove(lambda each: each.value != b"4")
    assert values(log) == [b"4"]
    log.remove(lambda _: True)
    assert values(log) == []


def test_there_are_none_where_there_is_no_directory(tmp_path: Path) -> None:
    assert list(DeadLetterLog(tmp_path / "nowhere").letters()) == []
    assert not (tmp_path / "nowhere").exists()


def test_who_is_killed_before_the_cursor_moves_leaves_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = DeadLetterLog(tmp_path)
    keep(log, b"1", b"2", b"3")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(GroupMember, "commit", killed)
        with pytest.raises(KeyboardInterrupt):
            log.remove(lambda each: each.value == b"1")
    assert values(log) == [b"1", b"2", b"2", b"3", b"3"], "at least once, and a retry of one twice changes nothing"
    log.remove(lambda each: each.value in {b"1", b"2"})
    assert set(values(log)) == {b"3"}


def test_letters_that_come_meanwhile_are_there_afterwards(tmp_path: Path) -> None:
    log = DeadLetterLog(tmp_path)
    keep(log, b"1", b"2")

    def while_another_comes(record: JournalRecord) -> bool:
        if record.value == b"1":
            keep(log, b"3")
        return record.value != b"3"

    log.remove(while_another_comes)
    assert values(log) == [b"3"]


def test_of_several_partitions_each_is_looked_at(tmp_path: Path) -> None:
    log = DeadLetterLog(tmp_path)
    with LocalLog.open(tmp_path).writer() as other:
        keep(log, b"2")
        other.append(b"1")
        assert len(LocalLog.open(tmp_path).partitions()) == 2
    log.remove(lambda each: each.value == b"1")
    assert values(log) == [b"2"]


def test_two_do_not_remove_at_once(tmp_path: Path) -> None:
    log = DeadLetterLog(tmp_path)
    keep(log, b"1")
    with LocalLog.open(tmp_path).group("dead-letters") as member:
        member.poll()
        with pytest.raises(LockedError, match="another process works on the dead letters"):
            log.remove(lambda _: True)
    assert values(log) == [b"1"]


def test_what_is_removed_takes_no_room(tmp_path: Path) -> None:
    log = DeadLetterLog(tmp_path, max_bytes=256 << 10)
    for number in range(6):
        keep(log, bytes([number]) * 30_000)
    log.remove(lambda each: each.value[0] != 5)
    assert [each.value[0] for each in log.letters()] == [5]
    assert 0 < sum(each.stat().st_size for each in (tmp_path / "partition-0000").glob("*.seg*")) < 100_000
