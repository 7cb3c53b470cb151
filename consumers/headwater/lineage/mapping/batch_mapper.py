"""Maps a batch of encoded events to rows. Events of unknown shapes are decoded and go through `map_event`."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any, Final, NamedTuple

from headwater.events.avro import Codec, UnknownEvent
from headwater.events.avro.raw_reader import kind_of
from headwater.events.envelope import Event
from headwater.lineage.mapping.event_templates import LEARNABLE, EventTemplate, EventTemplates
from headwater.lineage.mapping.events import ARRIVALS_PER_ROW, map_event
from headwater.lineage.mapping.repeated_rows import PendingRepeats, RepeatedRows
from headwater.lineage.mapping.row_builder import row_id
from headwater.lineage.mapping.row_templates import RowValues
from headwater.lineage.rows import Row, RowTimes, combine_rows, merge_by_key
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.copy_format import CopyRows

_NONE: Final[frozenset[bytes]] = frozenset()
MOST_MEMORY: Final = 192 << 20
"""About how much memory may hold what was learned, in bytes. Then all is forgotten, and learned anew."""
_ROW_MEMORY: Final = 350
"""The memory of a row that is remembered for a run."""


class MappedBatch(NamedTuple):
    """The rows of a batch."""

    rows: list[Row]
    """One row for each id."""
    new: list[Row]
    """The immutable rows among them and among the copies."""
    left_out: list[Row]
    """Immutable rows that the store has already. A row can be here more than once."""
    copies: CopyRows
    """More rows, in COPY's format. A row can be here and among `rows`."""


class BatchMapper:
    """Maps batches for one thread. What it learns about shapes of events it keeps for the next batch."""

    def __init__(
        self,
        codec: Codec | None = None,
        known: Container[bytes] = _NONE,
        *,
        packs: bool = False,
    ) -> None:
        """`known` are the ids of immutable rows that the store has already. With `packs` most rows come in COPY's
        format."""
        self._known = known
        self._packs = packs
        self._codec = codec or Codec()
        self._templates = {kind: EventTemplates(kind) for kind in LEARNABLE}
        self._repeats = PendingRepeats()
        self._rows_of_runs = 0
        self._forget_batch()

    def _forget_batch(self) -> None:
        self._rows: dict[bytes, Row] = {}
        self._lasting: dict[bytes, Row] = {}
        self._copied_lasting: dict[bytes, Row] = {}
        self._left_out: list[Row] = []
        self._copies = CopyRows()
        self._arrived: dict[tuple[bytes, str, int], list[int]] = {}

    def add(self, data: bytes, append_time: int | None = None) -> UnknownEvent | None:
        """Add an event. Return what is no event of a known kind; raise a DecodeError if the bytes are no event, and add
        nothing."""
        templates = self._templates.get(kind_of(data) or "")
        if templates is not None:
            found = templates.match(data)
            if found is not None and self._add_known(found.value, found.values, append_time):
                return None
        event = self._codec.decode(data)
        if not isinstance(event, Event):
            return event
        rows = self._add_mapped(event, append_time)
        if templates is not None:
            self._forget_if_large(templates.memory_for(data))
            templates.learn(data, event, append_time, rows)
        return None

    def add_event(self, event: Event, append_time: int | None = None) -> None:
        """Add a decoded event."""
        self._add_mapped(event, append_time)

    def drain(self) -> MappedBatch:
        """Return the rows of all events that were added since the last call."""
        for repeated in self._repeats.drain():
            for row in repeated.drain():
                self._merge(row)
            if self._packs:
                self._copy_lasting(repeated)
            else:
                for row in repeated.lasting:
                    self._merge_lasting(row)
        for row in self._arrival_rows():
            self._merge(row)
        self._forget_if_large()
        lasting = list(self._lasting.values())
        new = list((self._lasting | self._copied_lasting).values())
        batch = MappedBatch([*self._rows.values(), *lasting], new, self._left_out, self._copies)
        self._forget_batch()
        return batch

    def _add_known(self, template: EventTemplate, values: list[Any], append_time: int | None) -> bool:
        """Add an event whose shape is known. Return False, and add nothing, if a number is invalid."""
        arrival = template.arrival(values, append_time)
        if arrival is None:
            return False
        producer, number, time, stamp = arrival
        self._arrive(producer, template.family, number, time)
        environment = template.environment(values, arrival)
        repeated, built = template.repeated(environment)
        self._rows_of_runs += built
        self._repeats.record(repeated, time, stamp)
        if template.copies and self._packs:
            self._add_copies(template, environment)
        else:
            for each in template.facts:
                row = each.row(environment)
                environment.append(row.id)
                self._merge(row)
        for each in template.others:
            self._merge(each.row(environment))
        return True

    def _add_copies(self, template: EventTemplate, environment: RowValues) -> None:
        copied, by_kind = template.copied.environment(environment), self._copies.by_kind
        for each in template.copies:
            number = each.id(environment)
            environment.append(number)
            copied.append(number)
            rows = by_kind[each.kind.name]
            if number in rows:
                self._copies.add(each.kind, number, each.render(copied))
            else:
                rows[number] = each.render(copied)

    @property
    def memory(self) -> int:
        """About how much memory holds what was learned, in bytes."""
        return sum(each.memory for each in self._templates.values()) + _ROW_MEMORY * self._rows_of_runs

    def _forget_if_large(self, more: int = 0) -> None:
        """Forget all that was learned if it takes too much memory, or would with so much more."""
        if self.memory + more > MOST_MEMORY:
            for each in self._templates.values():
                each.forget()
            self._rows_of_runs = 0

    def _add_mapped(self, event: Event, append_time: int | None) -> list[Row]:
        """Add an event by way of `map_event`, completely or not at all. Return the rows that it yielded."""
        rows = list(map_event(event, append_time))
        for row in merge_by_key(rows).values():
            if row.kind.is_immutable:
                self._merge_lasting(row)
            else:
                self._merge(row)
        return rows

    def _arrive(self, producer: bytes, family: str, number: int, time: int) -> None:
        """Record the arrival of an event. One row per 63 numbers is built at the end."""
        block, bit = divmod(number - 1, ARRIVALS_PER_ROW)
        found = self._arrived.get((producer, family, block))
        if found is None:
            self._arrived[producer, family, block] = [time, time, 1 << bit]
            return
        if time < found[0]:
            found[0] = time
        elif time > found[1]:
            found[1] = time
        found[2] |= 1 << bit

    def _arrival_rows(self) -> Iterator[Row]:
        for key, (first, last, bits) in self._arrived.items():
            yield Row(t.ARRIVAL, row_id(t.ARRIVAL, key), key, (), RowTimes(first, last), (), bits)

    def _merge(self, row: Row) -> None:
        known = self._rows.get(row.id)
        self._rows[row.id] = row if known is None else combine_rows(known, row)

    def _copy_lasting(self, repeated: RepeatedRows) -> None:
        for row, data in zip(repeated.lasting, repeated.lasting_copies(), strict=True):
            if row.id in self._known:
                self._left_out.append(row)
            else:
                self._copied_lasting[row.id] = row
                self._copies.by_kind[row.kind.name][row.id] = data

    def _merge_lasting(self, row: Row) -> None:
        if row.id in self._known:
            self._left_out.append(row)
            return
        held = self._lasting.get(row.id)
        self._lasting[row.id] = row if held is None else combine_rows(held, row)
