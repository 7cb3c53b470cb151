"""A store that has the first interface only: it is called for what can be said there, and the bus keeps the offsets.

They are committed after the calls have come back, so what was under way when a writer was killed is said again; storing
what is there changes nothing. There is no table of dead letters: they go to their topic, before the offsets.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from headwater.consumers.sources import Batch
from headwater.consumers.writer.calls import Call, calls
from headwater.consumers.writer.plain import Written
from headwater.consumers.writer.reading import MOST_INVALID, Reader
from headwater.errors import HeadwaterError, TransientError
from headwater.lineage.api import LineageMeta
from headwater.lineage.bulk import DeadLetter

_LOG: Final = logging.getLogger(__name__)
WORDS: Final = (
    "this store has the interface of table and data lineage only: columns, runs, catalogs, gaps and what is deleted in "
    "part aren't kept there; offsets are kept by the bus"
)
Keep = Callable[[Sequence[DeadLetter]], None]


@dataclass(frozen=True)
class CallingPrepared:
    """A batch on its way."""

    batch: Batch = field(default_factory=Batch)
    calls: Sequence[Call] = ()
    letters: Sequence[DeadLetter] = ()
    told: list[int] = field(default_factory=lambda: [0])
    """How many of the calls came back."""


class CallingPipeline:
    """`prepare` is for one thread at a time, `store` for another."""

    def __init__(
        self, store: LineageMeta, kind: str, topic: str, keep: Keep | None = None, *, most_invalid: int = MOST_INVALID
    ) -> None:
        """`keep` is given dead letters, and has them when it comes back; without it they are told in the log."""
        self._store = store
        self._keep = keep
        self._reader = Reader(kind, topic, most_invalid=most_invalid)
        _LOG.warning(WORDS if keep else f"{WORDS}; what can't be stored is told in the log only")

    def prepare(self, batch: Batch) -> CallingPrepared:
        events = self._reader.events(batch.records)
        found = [call for event, record in events.told for call in calls(event, record.appended)]
        return CallingPrepared(batch, found, events.letters)

    def store(self, prepared: CallingPrepared) -> Written:
        """Where a call fails, those that came back aren't made again."""
        if self._keep is not None and prepared.letters:
            self._keep(prepared.letters)
        for call in self._left(prepared):
            self._call(call)
            prepared.told[0] += 1
        letters = tuple(prepared.letters)
        return Written(len(prepared.batch.records), len(prepared.calls), len(letters), kept=letters)

    @staticmethod
    def _left(prepared: CallingPrepared) -> Iterator[Call]:
        yield from prepared.calls[prepared.told[0] :]

    def _call(self, call: Call) -> None:
        try:
            call(self._store)
        except (HeadwaterError, MemoryError):
            raise
        except Exception as e:  # somebody else's code can fail in any way, and nothing may be passed over
            raise TransientError(f"the store failed: {type(e).__name__}: {e}") from e
