"""A local log for tests of the lake store: events, what is none, and events that come again."""

from __future__ import annotations

from pathlib import Path

from headwater.events.avro import Codec
from headwater.journal import LocalLog
from tests.kit.events.mixture import events

SOUND = [Codec().encode(each) for each in events(60, shapes=6)]
BAD = [b"no event", b"", SOUND[0][:-1]]
EVERYTHING = [*SOUND, *BAD, *SOUND[:30]]


def write_log(place: Path, data: list[bytes]) -> LocalLog:
    log = LocalLog.open(place)
    with log.writer() as one, log.writer() as other:
        for number, each in enumerate(data):
            (one if number % 3 else other).append(each)
    return log


def appended(log: LocalLog) -> list[tuple[bytes, int | None]]:
    """The sound records with their append times, read without the pipeline."""
    found = list[tuple[bytes, int | None]]()
    for name in log.partitions():
        with log.reader(name).tail(0) as tail:
            while read := tail.read(10_000):
                found += [(each.value, each.time) for each in read.records if each.value not in BAD]
    return found
