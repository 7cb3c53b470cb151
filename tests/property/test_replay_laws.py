"""Whatever the order, the partitions, the repetitions and the interruptions: a replay ends in the rows of the law."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.consumers.replay.filling import PhaseProgress, ReplayInterrupted, ReplaySettings
from headwater.consumers.replay.ranges import LogRange
from headwater.consumers.replay.replay import Replay
from headwater.events.avro import Codec
from headwater.journal import LocalLog
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import RowSet
from headwater.lineage.sql import store_digest
from headwater.lineage.store import StoreOptions, open_store
from headwater.testing.examples import EXAMPLES
from tests.kit.effort import examples

pytestmark = pytest.mark.slow

CODEC = Codec()
DATA = [CODEC.encode(each) for each in EXAMPLES]


class Interrupting:
    """Ends a replay when it shows this phase for the first time."""

    def __init__(self, phase: str) -> None:
        self._phase = phase

    def show(self, progress: PhaseProgress) -> None:
        if self._phase and progress.phase.startswith(self._phase):
            self._phase = ""
            raise ReplayInterrupted


def replayed(log: Path, store: Path, phase: str, batch: int) -> bool:
    """Return whether it was interrupted."""
    settings = ReplaySettings(batch=batch)
    source = LogRange(f"log:{log}", log, dict)
    replay = Replay(StoreOptions.at(str(store)), [source], settings, Interrupting(phase).show)
    try:
        replay.run()
    except ReplayInterrupted:
        return True
    return False


@settings(max_examples=examples(6))
@given(
    partitions=st.lists(st.lists(st.integers(0, len(DATA) - 1), max_size=12), min_size=1, max_size=3),
    phase=st.sampled_from(["", "reading", "catching up"]),
    batch=st.integers(1, 9),
)
def test_a_replay_ends_in_the_rows_of_the_law(partitions: list[list[int]], phase: str, batch: int) -> None:
    law = RowSet()
    with tempfile.TemporaryDirectory() as place:
        log, store = Path(place, "log"), Path(place, "store.db")
        writers = [LocalLog.open(log).writer() for _ in partitions]
        for writer, numbers in zip(writers, partitions, strict=True):
            for number in numbers:
                writer.append(DATA[number])
            writer.close()
        for name in LocalLog.open(log).partitions():
            for record in LocalLog.open(log).reader(name).tail(0).read(100).records:
                event = CODEC.decode(record.value)
                law.merge(map_event(event, record.time))  # type: ignore[arg-type]
        if replayed(log, store, phase, batch):
            assert not replayed(log, store, "", batch)
        with open_store(str(store)) as opened, opened.engine.connect() as connection:
            assert store_digest(connection) == law.digest()
