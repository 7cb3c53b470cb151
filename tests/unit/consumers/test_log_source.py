"""What a source gives of a local log at once."""

from __future__ import annotations

from pathlib import Path

from headwater.consumers.sources.log import MOST_BYTES, LogSource
from headwater.journal import LocalLog

LARGE = 1 << 20


def test_a_batch_of_large_events_is_bounded_by_their_bytes(tmp_path: Path) -> None:
    count = 2 * MOST_BYTES // LARGE + 1
    with LocalLog.open(tmp_path / "log").writer() as journal:
        for number in range(count):
            journal.append(b"%d" % (number % 10) * LARGE)
    source = LogSource(tmp_path / "log", "group")
    batches = [source.poll(5_000, 1) for _ in range(4)]
    source.close()
    sizes = [sum(len(record.data) for record in batch.records) for batch in batches]
    assert max(sizes) <= MOST_BYTES
    assert sum(sizes) == count * LARGE
    following = [at for batch in batches for at in batch.next.values()]
    assert following == [16, 32, 33]
