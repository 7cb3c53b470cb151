"""What a source gives of a local log at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.consumers.sources.local_log import MOST_BYTES, LocalLogSource
from headwater.consumers.writer.offsets import bus_work
from headwater.events.clock import wall_micros
from headwater.journal import Journal, JournalOptions, LocalLog

LARGE = 1 << 20


@pytest.mark.slow
def test_a_batch_of_large_events_is_bounded_by_their_bytes(tmp_path: Path) -> None:
    count = 2 * MOST_BYTES // LARGE + 1
    with LocalLog.open(tmp_path / "log").writer() as journal:
        for number in range(count):
            journal.append(b"%d" % (number % 10) * LARGE)
    source = LocalLogSource(tmp_path / "log", "group")
    batches = [source.poll(5_000, 1) for _ in range(4)]
    source.close()
    sizes = [sum(len(record.data) for record in batch.records) for batch in batches]
    assert max(sizes) <= MOST_BYTES
    assert sum(sizes) == count * LARGE
    following = [at for batch in batches for at in batch.next.values()]
    assert following == [16, 32, 33]


IN_2031 = 1_925_000_000_000_000


def test_a_writer_from_2031_dates_nothing(tmp_path: Path) -> None:
    """Its records count as appended with those before them: who bounds times by the log's isn't led astray, and the
    partition isn't taken for read until 2031."""
    before = wall_micros()
    for clock, value in ((lambda: before, b"a"), (lambda: IN_2031, b"b"), (lambda: before + 5, b"c")):
        with Journal.open(tmp_path / "log" / "partition-0000", JournalOptions(clock=clock)) as journal:
            journal.append(value)
    source = LocalLogSource(tmp_path / "log", "group")
    batch = source.poll(2, 1)
    assert [(each.data, each.append_time) for each in batch.records] == [(b"a", before), (b"b", before)]
    assert [each.until for each in bus_work(batch, "g", "log", "log").ingests] == [before]
    assert [(each.data, each.append_time) for each in source.poll(2, 1).records] == [(b"c", before + 5)]
    source.close()


def test_a_log_that_begins_in_2031_is_dated_now(tmp_path: Path) -> None:
    with LocalLog.open(tmp_path / "log", JournalOptions(clock=lambda: IN_2031)).writer() as journal:
        journal.append(b"a")
    source = LocalLogSource(tmp_path / "log", "group")
    (record,) = source.poll(2, 1).records
    source.close()
    assert record.append_time is not None
    assert record.append_time <= wall_micros()
