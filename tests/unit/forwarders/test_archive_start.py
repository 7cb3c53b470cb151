"""What a forwarder that begins with an archive reads, and where the bus goes on."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from headwater.consumers.archive.table import EventArchive
from headwater.consumers.sources.archive import GROUPS
from headwater.errors import ConfigurationError
from headwater.forwarders.starting import ArchiveStart
from tests.kit.archive.records import FIRST, SECOND, append, records


def test_it_is_read_from_its_beginning_each_time_and_the_bus_goes_on_at_its_ends(tmp_path: Path) -> None:
    """It finds offsets that are committed to the archive: the next attempt would send nothing before them."""
    archive = EventArchive.create(tmp_path)
    append(archive, [*records(FIRST, 3, 8), *records(SECOND, 0, 2)])
    start = ArchiveStart(str(tmp_path))
    append(archive, records(FIRST, 8, 9))
    assert start.offsets == {FIRST: 8, SECOND: 2}
    for _ in range(2):
        with closing(start.open()) as source:
            found = source.poll(100, 0.0)
            source.done(found.next)
        assert sorted((each.partition, each.offset) for each in found.records) == [
            *((FIRST, offset) for offset in range(3, 9)),
            *((SECOND, offset) for offset in range(2)),
        ]
    assert not (tmp_path / GROUPS).exists()
    archive.close()


def test_an_archive_without_events_is_refused(tmp_path: Path) -> None:
    EventArchive.create(tmp_path).close()
    with pytest.raises(ConfigurationError, match="headwater archive run"):
        ArchiveStart(str(tmp_path))
