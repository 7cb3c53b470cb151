"""Events of a local log. Its own cursors say where a group stands: a log that was made anew has none."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headwater.consumers.sources.api import CLOCKS, END_SECONDS, Batch, Hole, Taken
from headwater.errors import ConfigurationError
from headwater.events.clock import wall_micros
from headwater.events.health import GapReason
from headwater.journal import LocalLog, Why
from headwater.lineage.bulk import Partition

KIND: Final = "log"
MOST_BYTES: Final = 16 << 20
"""Of events in a batch: some are a megabyte each, and their rows are as large again several times."""
_REASONS: Final = {
    Why.DROPPED: GapReason.LOG_EXPIRED,
    Why.CORRUPT: GapReason.CORRUPTION,
    Why.MISSING: GapReason.CORRUPTION,
}


class LogSource:
    def __init__(self, directory: Path, group: str) -> None:
        if not directory.is_dir():
            raise ConfigurationError(
                f"{directory} isn't there: name the directory that drivers write to (spark.headwater.log.dir)"
            )
        self._log = LocalLog.open(directory)
        self._member = self._log.group(group)
        self._place = f"{socket.gethostname()}:{directory.resolve()}"
        self._partitions: dict[str, Partition] = {}
        self._given: dict[str, int] = {}
        self._look_at = 0.0

    @property
    def kind(self) -> str:
        return KIND

    @property
    def topic(self) -> str:
        return str(self._log.directory)

    def poll(self, most: int, timeout: float) -> Batch:
        asked = wall_micros()
        found = self._member.poll(most, timeout, MOST_BYTES)
        records = tuple(
            Taken(record.value, self._partition(name), record.offset, record.time, record.key, record.headers)
            for name, record in found.records
        )
        holes = tuple(
            Hole(self._partition(name), lost.first, lost.following, _REASONS[lost.why]) for name, lost in found.lost
        )
        self._given.update(found.positions)
        following = {self._partition(name): at for name, at in found.positions.items()}
        return Batch(records, following, holes, {} if found else self._ends(asked - CLOCKS))

    def _ends(self, until: int) -> dict[Partition, int]:
        """Nothing was there behind what was given, in any partition that this one reads."""
        if time.monotonic() < self._look_at:
            return {}
        self._look_at = time.monotonic() + END_SECONDS
        return {self._partition(name): until for name in self._member.assigned}

    def rest(self) -> None:
        """Files wait."""

    def done(self, positions: Mapping[Partition, int]) -> None:
        mine = {partition: name for name, partition in self._partitions.items()}
        self._member.commit({mine[partition]: position for partition, position in positions.items()})

    def behind(self) -> int:
        begun = self._member.committed.items()
        return sum(max(0, self._log.reader(name).next_offset() - self._given.get(name, at)) for name, at in begun)

    def close(self) -> None:
        self._member.close()

    def _partition(self, name: str) -> Partition:
        known = self._partitions.get(name)
        if known is None:
            known = self._partitions[name] = Partition(KIND, self._place, int(name.rpartition("-")[2]))
        return known
