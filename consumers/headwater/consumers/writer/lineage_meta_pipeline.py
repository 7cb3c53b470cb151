"""Writes into a store that implements only `LineageMeta`. The bus keeps the offsets.

Offsets are committed after the calls have returned. After a crash some calls are repeated, which changes nothing. Such
a store has no table of dead letters; they are in a local log before the offsets are committed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from headwater.consumers.sources import SourceBatch
from headwater.consumers.writer.lineage_meta_calls import CallMapper, StoreCall
from headwater.consumers.writer.pipeline import BatchResult, OneProcess
from headwater.consumers.writer.record_reader import MAX_INVALID, RecordReader
from headwater.errors import HeadwaterError, TransientError
from headwater.journal import DeadLetterLog, JournalEntry
from headwater.lineage.api import LineageMeta
from headwater.lineage.bulk import DeadLetter

_LOG: Final = logging.getLogger(__name__)
LIMITS_NOTICE: Final = (
    "this store has the interface of table and data lineage only: columns, runs, catalogs, gaps and what is deleted in "
    "part aren't kept there; offsets are kept by the bus"
)


@dataclass(frozen=True)
class PreparedCalls:
    """A batch that is ready to be stored."""

    batch: SourceBatch = field(default_factory=SourceBatch)
    calls: Sequence[StoreCall] = ()
    dead_letters: Sequence[DeadLetter] = ()
    to_keep: list[DeadLetter] = field(default_factory=list)
    """Those that aren't on the disk yet."""
    done: list[int] = field(default_factory=lambda: [0])
    """How many calls have returned."""


class LineageMetaPipeline(OneProcess):
    """Maps in `prepare` on one thread and calls the store in `store` on another."""

    def __init__(
        self,
        store: LineageMeta,
        kind: str,
        topic: str,
        letters: DeadLetterLog,
        *,
        most_invalid: int = MAX_INVALID,
    ) -> None:
        self._store = store
        self._letters = letters
        self._mapper = CallMapper()
        self._reader = RecordReader(kind, topic, most_invalid=most_invalid)
        _LOG.warning(LIMITS_NOTICE)

    def prepare(self, batch: SourceBatch) -> PreparedCalls:
        events = self._reader.events(batch.records)
        found = [call for event, record in events.events for call in self._mapper.calls(event, record.append_time)]
        return PreparedCalls(batch, found, events.dead_letters, list(events.dead_letters))

    def start_over(self) -> None:
        """Do nothing: such a store has no marks, and the bus keeps its offsets."""

    def store(self, prepared: PreparedCalls) -> BatchResult:
        """Make the calls. If one fails, the next attempt continues with it."""
        if prepared.to_keep:
            self._letters.keep(list(map(_log_entry, prepared.to_keep)))
            prepared.to_keep.clear()
        for call in self._remaining_calls(prepared):
            self._call(call)
            prepared.done[0] += 1
        letters = tuple(prepared.dead_letters)
        return BatchResult(len(prepared.calls), dead_letters=letters)

    @staticmethod
    def _remaining_calls(prepared: PreparedCalls) -> Iterator[StoreCall]:
        yield from prepared.calls[prepared.done[0] :]

    def _call(self, call: StoreCall) -> None:
        try:
            call(self._store)
        except (HeadwaterError, MemoryError):
            raise
        except Exception as e:  # somebody else's code can fail in any way, and nothing may be passed over
            raise TransientError(f"the store failed: {type(e).__name__}: {e}") from e


def _log_entry(letter: DeadLetter) -> tuple[JournalEntry, str]:
    """Return the record as it came from the bus, and why it is a dead letter."""
    place = f"{letter.topic_name}/{letter.partition.number}@{letter.position}"
    return JournalEntry(letter.data, letter.key, letter.headers), f"{letter.reason.value}: {letter.error} ({place})"
