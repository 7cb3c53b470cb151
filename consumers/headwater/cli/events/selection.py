"""Which events are shown: by kind, job, table and time."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from headwater.cli.events.reading import LocatedRecord
from headwater.events.avro import UnknownEvent
from headwater.events.envelope import Event
from headwater.events.keys import KIND, datasets_in, jobs_in


@dataclass
class Selection:
    """No condition takes everything; of several all must hold, and of several values of one any."""

    kinds: Collection[str] = ()
    jobs: Collection[re.Pattern[str]] = ()
    tables: Collection[re.Pattern[str]] = ()
    since: datetime | None = None
    until: datetime | None = None
    unreadable: int = 0
    """How many were left out because what can't be read has neither job nor table."""

    def takes(self, found: LocatedRecord) -> bool:
        if not self._takes_kind(found):
            return False
        event = event_in(found)
        time = found.origin.time if event is None else event.time
        if (self.since and time < self.since) or (self.until and time >= self.until):
            return False
        if not self.jobs and not self.tables:
            return True
        if event is None:
            self.unreadable += 1
            return False
        return _any_matches(self.jobs, jobs_in(event)) and _any_matches(self.tables, datasets_in(event))

    def _takes_kind(self, found: LocatedRecord) -> bool:
        """Look at the record's headers first: decoding takes much longer."""
        if not self.kinds:
            return True
        beside = found.origin.headers.get(KIND)
        event = event_in(found) if beside is None else None
        return (beside or (event.kind if event else "")) in self.kinds


def event_in(found: LocatedRecord) -> Event | None:
    """Return the event, or what can be read of one that a newer headwater wrote."""
    content = found.content
    if isinstance(content, UnknownEvent):
        return content.known
    return content if isinstance(content, Event) else None


def _any_matches(patterns: Collection[re.Pattern[str]], names: Iterator[str]) -> bool:
    return not patterns or any(each.fullmatch(name) for name in names for each in patterns)
