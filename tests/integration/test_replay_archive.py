"""A store that is rebuilt from an archive, a Delta table, has the rows of the law, and those of the log itself."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random

import pytest
from deltalake import DeltaTable

from headwater.cli import main
from headwater.journal import LocalLog
from headwater.lineage.store import open_store
from headwater.testing.examples import EXAMPLES
from tests.kit.events.mixture import events
from tests.kit.events.written import CODEC, digest_by_law, digest_in

pytestmark = pytest.mark.slow

PARTITIONS = 3
COMMITS = 4
LATER = datetime.now(timezone.utc) + timedelta(days=2)
EARLY = [each.model_copy(update={"time": LATER}) for each in events(20, shapes=5)]
"""Of drivers whose clocks are days ahead: the time of their rows is when they were appended."""
SOUND = [CODEC.encode(each) for each in [*events(120, shapes=10), *EARLY, *EXAMPLES]]
BROKEN = b"no event"


def shuffled() -> list[bytes]:
    """Each event at least once, every third one twice, and something that is no event."""
    found = [*SOUND, *SOUND[::3], BROKEN]
    Random(15).shuffle(found)
    return found


def append(log: LocalLog, data: Sequence[bytes]) -> None:
    with ExitStack() as stack:
        writers = [stack.enter_context(log.writer()) for _ in range(PARTITIONS)]
        for number, each in enumerate(data):
            writers[number % PARTITIONS].append(each)


def digest_on(log: LocalLog, group: str) -> tuple[str, list[bytes]]:
    """What the law makes of all that is on the log, and that."""
    records = [record for _, record in log.group(group).poll(10_000).records]
    law = digest_by_law([(each.value, each.time) for each in records if each.value != BROKEN])
    return law, sorted(each.value for each in records)


def rebuilt(place: Path, *sources: str) -> tuple[str, list[bytes]]:
    """The digest of a new store, and its dead letters."""
    flags = [word for source in sources for word in ("--from", source)]
    assert main(["replay", "--store", str(place), "--batch", "37", *flags]) == 0
    with open_store(str(place)) as store:
        return digest_in(store), sorted(letter.data for _, letter in store.bulk.dead_letters())


def test_an_archive_of_several_commits_gives_the_rows_of_its_log_before_and_after_it_is_compacted(
    tmp_path: Path,
) -> None:
    """Other tests count an archive's events: they don't notice that the table changed what rows are made of besides,
    such as the times at which events were appended. Nor do they read one whose files were merged."""
    log, archive = LocalLog.open(tmp_path / "log"), tmp_path / "archive"
    bus, data = f"log:{log.directory}", shuffled()
    share = len(data) // COMMITS + 1
    for at in range(0, len(data), share):
        append(log, data[at : at + share])
        assert main(["archive", "run", "--bus", bus, "--archive", str(archive), "--until-end"]) == 0
    law, everything = digest_on(log, "first")
    assert everything == sorted(data)
    files = len(DeltaTable(str(archive)).file_uris())
    assert files >= COMMITS
    assert rebuilt(tmp_path / "before.db", f"archive:{archive}") == (law, [BROKEN])
    assert main(["archive", "compact", "--archive", str(archive), "--before", "2999-01-01"]) == 0
    assert len(DeltaTable(str(archive)).file_uris()) < files
    assert rebuilt(tmp_path / "after.db", f"archive:{archive}") == (law, [BROKEN])
    assert rebuilt(tmp_path / "log.db", bus) == (law, [BROKEN])
    append(log, SOUND[:50])
    assert rebuilt(tmp_path / "both.db", f"archive:{archive}", bus) == (digest_on(log, "second")[0], [BROKEN])
