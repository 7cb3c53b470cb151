"""Maps a batch of encoded events to rows. Uncommon events are decoded and go through `mapping.map_event`."""

from __future__ import annotations

from collections.abc import Container
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from headwater.events.avro import Codec, UnknownEvent
from headwater.events.avro.raw_reader import envelope_of, kind_of
from headwater.events.envelope import Event, EventFamily
from headwater.events.jobs import Committed, JobLineage
from headwater.lineage.fast_path.commit_templates import CommitMapper
from headwater.lineage.fast_path.repeated_rows import JobRows, PendingRepeats
from headwater.lineage.mapping import map_event
from headwater.lineage.mapping.events import ARRIVALS_PER_ROW
from headwater.lineage.mapping.row_builder import cap_time, make_stamp, row_id
from headwater.lineage.rows import Row, RowTimes, combine_rows, merge_by_key
from headwater.lineage.rows import tables as t

_COMMITTED: Final = Committed.__name__
_LINEAGE: Final = JobLineage.__name__
_JOB: Final = EventFamily.JOB.value
_NONE: Final[frozenset[bytes]] = frozenset()
MOST_MEMORY: Final = 192 << 20
"""About how much memory may hold what was learned, in bytes. Then all is forgotten, and learned anew."""
_COMMIT_MEMORY: Final = 90
"""The memory of a commit's template, in bytes, for each byte of the event that it was learned from: 60 to 90."""
_SHAPE_MEMORY: Final = 30
"""The memory of the rows of a JobLineage for each of its bytes."""
_ROW_MEMORY: Final = 350
"""The memory of a row of table lineage that is remembered for a run."""


class MappedBatch(NamedTuple):
    """The rows of a batch."""

    rows: list[Row]
    """One row for each id."""
    new: list[Row]
    """The immutable rows among them."""
    left_out: list[Row]
    """Immutable rows that the store has already. A row can be here more than once."""


class BatchMapper:
    """Maps batches for one thread. What it learns about tables, jobs and fingerprints it keeps for the next batch."""

    def __init__(self, codec: Codec | None = None, known: Container[bytes] = _NONE) -> None:
        """`known` are the ids of immutable rows that the store has already."""
        self._known = known
        self._codec = codec or Codec()
        self._rows: dict[bytes, Row] = {}
        self._lasting: dict[bytes, Row] = {}
        self._left_out: list[Row] = []
        self._agains = PendingRepeats()
        self._commits = CommitMapper(self._agains)
        self._shapes: dict[bytes, JobRows] = {}
        self._shape_bytes = 0
        self._arrived: dict[tuple[bytes, int], list[int]] = {}

    def add(self, data: bytes, append_time: int | None = None) -> UnknownEvent | None:
        """Add an event. Return what is no event of a known kind; raise a DecodeError if the bytes are no event, and add
        nothing."""
        kind = kind_of(data)
        if kind == _COMMITTED:
            return self._add_commit(data, append_time)
        if kind == _LINEAGE:
            return self._add_shape(data, append_time)
        return self._add_any(data, append_time)

    def add_event(self, event: Event, append_time: int | None = None) -> None:
        """Add a decoded event."""
        self._merge_all(event, append_time)

    def drain(self) -> MappedBatch:
        """Return the rows of all events that were added since the last call."""
        for again in self._agains.drain():
            for row in again.drain():
                self._merge(row)
            for row in again.lasting:
                self._merge_lasting(row)
        for row in self._arrival_rows():
            self._merge(row)
        self._forget_if_large()
        rows, lasting, left_out = self._rows, self._lasting, self._left_out
        self._rows, self._lasting, self._left_out = {}, {}, []
        return MappedBatch([*rows.values(), *lasting.values()], list(lasting.values()), left_out)

    def _add_commit(self, data: bytes, append_time: int | None) -> UnknownEvent | None:
        mapped = self._commits.rows(data, append_time)
        if mapped is None:
            self._forget_if_large(_COMMIT_MEMORY * len(data))
            return self._add_new_commit(data, append_time)
        arrival, rows = mapped
        self._arrive(*arrival)
        held = self._rows
        for row in rows:
            known = held.get(row.id)
            held[row.id] = row if known is None else combine_rows(known, row)
        return None

    def _add_new_commit(self, data: bytes, append_time: int | None) -> UnknownEvent | None:
        found = self._codec.decode(data)
        if not isinstance(found, Event):
            return found
        self._merge_all(found, append_time)
        if isinstance(found, Committed):
            self._commits.learn(data, found)
        return None

    def _add_shape(self, data: bytes, append_time: int | None) -> UnknownEvent | None:
        """Add a JobLineage. All that follows the envelope is the same for each repetition, so it is looked up by a hash
        of its bytes."""
        opened = envelope_of(data, _LINEAGE)
        if opened is None:
            return self._add_any(data, append_time)
        envelope, end = opened
        key = _shape_key(envelope, data[end:])
        job_rows = self._shapes.get(key)
        if job_rows is None:
            job_rows = self._learned_shape(key, self._decoded(data), len(data))
        time = cap_time(envelope["time"], append_time)
        stamp = make_stamp(time, envelope["producer"], envelope["sequence"])
        self._agains.record(job_rows, envelope["run"], time, stamp)
        self._arrive(envelope["producer"], envelope["family_sequence"], time)
        return None

    def _learned_shape(self, key: bytes, event: Event, size: int) -> JobRows:
        self._forget_if_large(_SHAPE_MEMORY * size)
        self._shape_bytes += size
        job_rows = self._shapes[key] = JobRows(map_event(event))
        return job_rows

    @property
    def memory(self) -> int:
        """About how much memory holds what was learned, in bytes."""
        of_events = _COMMIT_MEMORY * self._commits.learned_bytes + _SHAPE_MEMORY * self._shape_bytes
        return of_events + _ROW_MEMORY * self._agains.rows_of_runs

    def _forget_if_large(self, more: int = 0) -> None:
        """Forget all that was learned if it takes too much memory, or would with so much more."""
        if self.memory + more > MOST_MEMORY:
            self._commits.forget()
            self._shapes.clear()
            self._shape_bytes = self._agains.rows_of_runs = 0

    def _add_any(self, data: bytes, append_time: int | None) -> UnknownEvent | None:
        found = self._codec.decode(data)
        if not isinstance(found, Event):
            return found
        self._merge_all(found, append_time)
        return None

    def _decoded(self, data: bytes) -> Any:
        return self._codec.decode(data)

    def _merge_all(self, event: Event, append_time: int | None) -> None:
        for row in merge_by_key(map_event(event, append_time)).values():
            if row.kind.is_immutable:
                self._merge_lasting(row)
            else:
                self._merge(row)

    def _arrive(self, producer: bytes, number: int, time: int) -> None:
        """Record the arrival of a job event. One row per 63 numbers is built at the end."""
        block, bit = divmod(number - 1, ARRIVALS_PER_ROW)
        found = self._arrived.get((producer, block))
        if found is None:
            self._arrived[producer, block] = [time, time, 1 << bit]
            return
        if time < found[0]:
            found[0] = time
        elif time > found[1]:
            found[1] = time
        found[2] |= 1 << bit

    def _arrival_rows(self) -> list[Row]:
        arrived, self._arrived = self._arrived, {}
        return [
            Row(t.ARRIVAL, row_id(t.ARRIVAL, key), key, (), RowTimes(first, last), (), bits)
            for (producer, block), (first, last, bits) in arrived.items()
            for key in [(producer, _JOB, block)]
        ]

    def _merge(self, row: Row) -> None:
        known = self._rows.get(row.id)
        self._rows[row.id] = row if known is None else combine_rows(known, row)

    def _merge_lasting(self, row: Row) -> None:
        if row.id in self._known:
            self._left_out.append(row)
            return
        held = self._lasting.get(row.id)
        self._lasting[row.id] = row if held is None else combine_rows(held, row)


def _shape_key(envelope: dict[str, Any], rest: bytes) -> bytes:
    mapped = repr(envelope["job"]).encode()
    return blake2b(b"%d:%b%b" % (len(mapped), mapped, rest), digest_size=16).digest()
