"""Maps events whose shape is known from an earlier event, straight from their bytes.

Most events of a platform repeat the tables and the job of an earlier one, which was decoded and mapped. They differ in
numbers, times and ids only. Rows fall into groups: those that repeat in each event of the shape, those that repeat in
each event of a run, facts that one event alone reports, and others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from headwater.events.avro.raw_reader import LATEST
from headwater.events.avro.template_cache import Match, Template, TemplateCache
from headwater.events.envelope import Event
from headwater.lineage.mapping.repeated_rows import RepeatedRows
from headwater.lineage.mapping.row_builder import arrival_family, cap_time, clean_text, make_stamp
from headwater.lineage.mapping.row_comparison import NotLearnableError, RowComparison, render_text
from headwater.lineage.mapping.row_templates import (
    CopyLayout,
    CopyTemplate,
    Origin,
    RowTemplate,
    RowValues,
    ValueLayout,
    ValueSource,
    picker,
)
from headwater.lineage.rows import Row, RowKind
from headwater.lineage.rows.columns import NO_STAMP
from headwater.lineage.rows.model import NEVER
from headwater.lineage.rows.tables import EVENT_FACTS

_STAMPED: Final = ("producer", "sequence", "family_sequence", "time")
_ENVELOPE: Final = (*_STAMPED, "application", "run", "statement", "operation")
_COMMIT_FIELDS: Final = ("barrier", "incarnation", "batch_id", "snapshot", "version", "parent", "rows", "bytes")


class Learnable(NamedTuple):
    """A kind of events that is learned."""

    varying: tuple[str, ...]
    """The fields that become slots, at any depth. A field that JSON leaves out if it has its default can't be one,
    unless that is None: whether a field is absent belongs to the shape."""
    memory: int
    """The memory of a template, in bytes, for each byte of the event that it was learned from."""


LEARNABLE: Final = {
    "Committed": Learnable((*_ENVELOPE, *_COMMIT_FIELDS), 90),
    "JobLineage": Learnable(_ENVELOPE, 16),
    "JobStatusChanged": Learnable(_ENVELOPE, 55),
    "AlterTable": Learnable((*_ENVELOPE, "schema_id", "produced", "parent", "value"), 30),
}
COUNTS: Final = frozenset({"sequence", "family_sequence", "batch_id", "rows", "bytes"})
"""The slots that models want to be at least 0."""
_MOST_RUNS: Final = 64
"""Rows of this many runs are remembered per template. Runs of a job usually follow each other."""
_MOST_CREDIT: Final = 1_000
_CREDIT: Final = 2
"""How many more events may be learned for each event that was recognised."""
_RARELY: Final = 32
"""Without credit every so many events are learned: shapes that never come again aren't worth it."""
RowSources: TypeAlias = "tuple[RowKind, list[ValueSource]]"


class Arrival(NamedTuple):
    """Which of a producer's events this was, and when."""

    producer: bytes
    number: int
    time: int
    stamp: bytes


@dataclass
class _Groups:
    """The rows of an event by how they vary."""

    repeated: list[Row] = field(default_factory=list)
    in_runs: list[RowSources] = field(default_factory=list)
    facts: list[RowSources] = field(default_factory=list)
    others: list[RowSources] = field(default_factory=list)

    def add(self, first: Row, second: Row, comparison: RowComparison) -> None:
        if first == second:
            self.repeated.append(first)
            return
        kind, sources = first.kind, comparison.sources(first, second)
        key = sources[1 : 1 + len(kind.key)]
        is_fixed = all(each.is_constant for each in key)
        if kind.is_immutable and not all(each.is_constant for each in sources):
            raise NotLearnableError
        is_repeat = _tells_times_only(kind, sources, comparison.ranks)
        if is_fixed and is_repeat:
            self.repeated.append(first)
        elif kind in EVENT_FACTS and not is_fixed:
            number = comparison.ids[second.id] = len(self.facts)
            self.facts.append((kind, [ValueSource(Origin.ID, number, first.id), *sources[1:]]))
        elif is_repeat and all(each.origin in {Origin.CONSTANT, Origin.SLOT} for each in key):
            self.in_runs.append((kind, sources))
        else:
            self.others.append((kind, sources))


def _tells_times_only(kind: RowKind, sources: Sequence[ValueSource], ranks: Sequence[int]) -> bool:
    """Return whether events set nothing in this row except its first and last times and stamps of rank 0."""
    at = 1 + len(kind.key) + len(kind.maxima)
    if not all(each.is_constant for each in sources[1 + len(kind.key) : at]):
        return False
    for name in kind.time_columns:
        source = sources[at]
        if not (source.value == NEVER if name == "deleted" else source.origin is Origin.TIME):
            return False
        at += 1
    for group in kind.groups:
        stamp, *values = sources[at : at + 1 + len(group.columns)]
        is_newest = stamp.origin is Origin.STAMP and ranks[stamp.number] == 0
        if not ((is_newest or stamp.value == NO_STAMP) and all(each.is_constant for each in values)):
            return False
        at += 1 + len(group.columns)
    return True


class EventTemplate:
    """The rows of all events of one shape."""

    def __init__(self, event: Event, slots: Template, rows: _Groups, comparison: RowComparison) -> None:
        self.family: Final = arrival_family(event)
        self._stamped = tuple(slots.places[name,] for name in _STAMPED)
        self._counts = tuple(slot for path, slot in slots.places.items() if path[-1] in COUNTS)
        self._clean = tuple(slot for slot, value in enumerate(slots.values) if isinstance(value, str))
        self._texts, self._ranks = comparison.texts, comparison.ranks
        layout = ValueLayout(len(slots.values), len(self._ranks), len(self._texts))
        self._repeated = rows.repeated
        self._in_runs = [RowTemplate(*each, layout) for each in rows.in_runs]
        self._run_key = picker(sorted({layout.place(each) for each in _key_sources(rows.in_runs)}))
        self._of_runs: dict[tuple[Any, ...], RepeatedRows] = {}
        self.others: Final = [RowTemplate(*each, layout) for each in rows.others]
        self.facts: Final = [RowTemplate(*each, layout) for each in rows.facts]
        self.copied: Final = CopyLayout([source for _, sources in rows.facts for source in sources], layout)
        self.copies: Final = [CopyTemplate(*each, layout, self.copied) for each in rows.facts]

    def arrival(self, values: Sequence[Any], append_time: int | None) -> Arrival | None:
        """Return None if a number isn't what the event's model wants."""
        producer, sequence, number, moment = [values[slot] for slot in self._stamped]
        if not 0 <= moment < LATEST or min([values[slot] for slot in self._counts]) < 0:
            return None
        time = cap_time(moment, append_time)
        return Arrival(producer, number, time, make_stamp(time, producer, sequence))

    def environment(self, values: list[Any], arrival: Arrival) -> RowValues:
        """Turn the values of an event's slots into an environment, up to the ids."""
        texts = [render_text(each, values) for each in self._texts]
        for slot in self._clean:
            values[slot] = clean_text(values[slot])
        stamp = arrival.stamp
        values.append(arrival.time)
        values += [stamp if rank == 0 else b"%c%b" % (rank, stamp[1:]) for rank in self._ranks]
        values += texts
        return values

    def repeated(self, environment: RowValues) -> tuple[RepeatedRows, int]:
        """Return the rows that repeat in each event of a run, and how many of them had to be built."""
        key = self._run_key(environment)
        known = self._of_runs.get(key)
        if known is not None:
            return known, 0
        if len(self._of_runs) >= _MOST_RUNS:
            self._of_runs.clear()
        of_run = [each.row(environment) for each in self._in_runs]
        built = self._of_runs[key] = RepeatedRows([*self._repeated, *of_run])
        return built, len(of_run)


def _key_sources(rows: Sequence[RowSources]) -> Iterator[ValueSource]:
    for kind, sources in rows:
        yield from (each for each in sources[1 : 1 + len(kind.key)] if not each.is_constant)


class EventTemplates:
    """The templates of one kind of events."""

    def __init__(self, kind: str) -> None:
        self.cache: Final[TemplateCache[EventTemplate]] = TemplateCache(kind, LEARNABLE[kind].varying)
        self._memory = LEARNABLE[kind].memory
        self._credit = _MOST_CREDIT
        self._seen = 0
        self.memory = 0
        """About how much memory holds what was learned, in bytes."""

    def __len__(self) -> int:
        return len(self.cache)

    def memory_for(self, data: bytes) -> int:
        """Return about how much memory a template of this event takes."""
        return self._memory * len(data)

    def match(self, data: bytes) -> Match[EventTemplate] | None:
        found = self.cache.match(data)
        if found is not None and self._credit < _MOST_CREDIT:
            self._credit += _CREDIT
        return found

    def learn(self, data: bytes, event: Event, append_time: int | None, rows: Sequence[Row]) -> None:
        """Learn the shape of an event, given the rows that `map_event` yielded for it."""
        self._seen += 1
        if event.part is not None or (self._credit <= 0 and self._seen % _RARELY):
            return
        self._credit -= 1
        slots, node = self.cache.learn(data)
        try:
            comparison = RowComparison(event, append_time, slots)
            groups = _group_rows(comparison, rows)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - not an event's fault: nobody wrote the one that it is compared with
            return
        self.cache.keep(node, EventTemplate(event, slots, groups, comparison))
        self.memory += self.memory_for(data)

    def forget(self) -> None:
        self.cache.clear()
        self.memory = 0


def _group_rows(comparison: RowComparison, rows: Sequence[Row]) -> _Groups:
    groups = _Groups()
    for first, second in comparison.pairs(rows):
        if not first.kind.has_bits:  # the mapper counts arrivals by itself
            groups.add(first, second, comparison)
    return groups
