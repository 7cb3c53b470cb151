"""Builds the rows of a commit from its bytes.

Nearly every commit repeats the tables and the job of an earlier one, which was decoded and validated. Only numbers
differ. So the rows are built from a template, with values from known positions in the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from headwater.events.avro.raw_reader import LATEST
from headwater.events.avro.template_cache import Template, TemplateCache, ValuePath
from headwater.events.jobs import Committed, Input, Output
from headwater.lineage.fast_path.repeated_rows import JobRows, PendingRepeats
from headwater.lineage.mapping import commits as law
from headwater.lineage.mapping import map_event
from headwater.lineage.mapping.row_builder import cap_time, clean_text, job_name_key, make_stamp
from headwater.lineage.rows import GroupValues, Row, RowKind
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.model import RowTimes
from headwater.lineage.rows.values import HASH_BYTES, Value, encode

_ENVELOPE: Final = ("producer", "sequence", "family_sequence", "time", "application")
_VARYING: Final = (
    *_ENVELOPE,
    *("run", "statement", "barrier", "incarnation", "batch_id"),
    *("snapshot", "version", "parent", "rows", "bytes"),
)
_PRODUCER, _SEQUENCE, _FAMILY_SEQUENCE, _TIME, _APPLICATION = range(len(_ENVELOPE))
_EDGE: Final = encode((t.COMMIT_EDGE.name,))
_COUNTS: Final = ("rows", "bytes")
_COMMIT: Final = 2
"""How many columns at the beginning of a read's or write's key identify its commit."""
_NUMBER: Final = b"i%d;"
_NAMED: Final = b"b%d:%%b%b" % (HASH_BYTES, _NUMBER)
_WHOSE: Final = b"%bb%d:%%b" % (_NUMBER, HASH_BYTES)
"""Sixteen bytes and a number, and the other way round, as `values.encoded` writes them, in a format."""
SlotGetter: TypeAlias = "Callable[[Sequence[Any]], tuple[Any, ...]]"


class EventArrival(NamedTuple):
    """Which of a producer's events this was, and when."""

    producer: bytes
    number: int
    time: int


class _CommitContext(NamedTuple):
    """The values of a commit that its reads and writes share."""

    barrier: int
    commit: bytes
    span: RowTimes
    stamp: bytes


class SlotReader:
    """Reads some values (at least two) of a matched template; None for a value that is absent."""

    def __init__(self, at: Template, paths: Sequence[ValuePath]) -> None:
        self.places = [at.place(*each) for each in paths]
        self.picked: SlotGetter = itemgetter(*self.places)
        self.present = [place for place in self.places if place >= 0]
        self.has_texts = not at.texts.isdisjoint(self.present)


class _AccessTemplate:
    """An input or an output: what is the same in each commit, and where the varying values are.

    Which values are present is the same in each commit too. So the bytes to hash are one format string with numbers,
    except where texts vary.
    """

    __slots__ = ("_end", "_format", "_kind", "_middle", "_numbers", "_present", "_rest", "counted", "counts")

    def __init__(self, kind: RowKind, key: tuple[Value, ...], numbers: SlotReader, counts: SlotReader) -> None:
        self._kind = kind
        self._middle, self._end = key[_COMMIT : len(key) - 1 - len(numbers.places)], key[-1:]
        self._numbers = numbers.picked
        self._present = _slot_getter(numbers.present)
        beginning = _escape(encode((kind.name,))) + _WHOSE + _escape(encode(self._middle))
        self._rest = encode(self._end) if numbers.has_texts else None
        if numbers.has_texts:
            self._format = beginning
        else:
            fields = b"".join(_NUMBER if place >= 0 else encode((None,)) for place in numbers.places)
            self._format = beginning + fields + _escape(encode(self._end))
        self.counts, self.counted = counts.picked, counts.present

    def row(self, values: Sequence[Value], context: _CommitContext, fields: GroupValues) -> Row:
        numbers = self._numbers(values)
        if self._rest is None:
            named = self._format % (context.barrier, context.commit, *self._present(values))
        else:
            numbers = tuple([clean_text(each) if isinstance(each, str) else each for each in numbers])
            named = self._format % context[:_COMMIT] + encode(numbers) + self._rest
        key = (context.barrier, context.commit, *self._middle, *numbers, *self._end)
        return Row(self._kind, blake2b(named, digest_size=HASH_BYTES).digest(), key, (), context.span, (fields,))


def _slot_getter(places: Sequence[int]) -> SlotGetter:
    """A tuple, of however many."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda values: tuple([values[place] for place in places])


def _escape(data: bytes) -> bytes:
    """As it stands in a format."""
    return data.replace(b"%", b"%%")


class _ReadTemplate(_AccessTemplate):
    __slots__ = ("_facts",)

    def __init__(self, number: int, source: Input, at: Template) -> None:
        mine = ("inputs", number)
        named: list[ValuePath] = [("snapshot",), ("version",), ("since", "snapshot"), ("since", "version")]
        numbers = SlotReader(at, [(*mine, *each) for each in named])
        counts = SlotReader(at, [(*mine, each) for each in _COUNTS])
        super().__init__(t.READ, law.read_key((0, b""), source), numbers, counts)
        self._facts = law.read_facts(source)[: -len(_COUNTS)]

    def read(self, values: Sequence[Value], context: _CommitContext) -> Row:
        return self.row(values, context, GroupValues(context.stamp, (*self._facts, *self.counts(values))))


class _WriteTemplate(_AccessTemplate):
    __slots__ = ("_facts", "_parent", "made")

    def __init__(self, number: int, output: Output, count: int, at: Template) -> None:
        mine = ("outputs", number)
        numbers = SlotReader(at, [(*mine, each) for each in ("snapshot", "version")])
        counts = SlotReader(at, [(*mine, each) for each in _COUNTS])
        super().__init__(t.WRITE, law.write_key((0, b""), output), numbers, counts)
        made = output.made_from
        is_all = made is not None and len(set(made)) == count
        made_from = law.UNKNOWN if made is None else law.ALL if is_all else law.SOME
        self._facts = law.write_facts(output, made_from)[1 : -len(_COUNTS)]
        self._parent = at.place(*mine, "parent")
        self.made: tuple[int, ...] = () if made is None or is_all else made

    def written(self, values: Sequence[Value], context: _CommitContext) -> Row:
        facts = (values[self._parent], *self._facts, *self.counts(values))
        return self.row(values, context, GroupValues(context.stamp, facts))


class _CommitTemplate:
    """The template of commits of one job that read and write the same tables."""

    __slots__ = ("_counted", "_format", "barrier", "facts", "incarnation", "job", "job_rows", "run", "sinks", "sources")

    def __init__(self, event: Committed, at: Template) -> None:
        self.job_rows = JobRows(map_event(event))
        self.job, self.run, self.barrier = job_name_key(event.job), at.place("run"), at.place("barrier")
        self.incarnation = at.place("incarnation")
        self._format = _escape(encode((t.COMMIT.name, *self.job))) + _NAMED
        self.sources = [_ReadTemplate(number, each, at) for number, each in enumerate(event.inputs)]
        self.sinks = [_WriteTemplate(number, each, len(event.inputs), at) for number, each in enumerate(event.outputs)]
        self.facts = _facts(event, at)
        counts = [at.place("batch_id"), *(each for place in (*self.sources, *self.sinks) for each in place.counted)]
        self._counted = _slot_getter([place for place in counts if place >= 0])

    def is_sound(self, values: Sequence[Any]) -> bool:
        """Check the numbers as the event's model would."""
        return min(self._counted(values), default=0) >= 0

    def rows(self, values: Sequence[Any], time: int, stamp: bytes) -> Iterator[Row]:
        """Yield the rows of a commit, except those that repeat."""
        barrier, incarnation = values[self.barrier], values[self.incarnation]
        if incarnation is None:
            incarnation = values[_PRODUCER]
        key = (*self.job, incarnation, barrier)
        commit = blake2b(self._format % (incarnation, barrier), digest_size=HASH_BYTES).digest()
        context = _CommitContext(barrier, commit, RowTimes(time, time), stamp)
        yield Row(t.COMMIT, commit, key, (), context.span, (GroupValues(stamp, self.facts(values, time)),))
        reads = [source.read(values, context) for source in self.sources]
        yield from reads
        for sink in self.sinks:
            row = sink.written(values, context)
            yield row
            for index in sink.made:
                edge = (barrier, row.id, reads[index].id)
                number = blake2b(_EDGE + encode(edge), digest_size=HASH_BYTES).digest()
                yield Row(t.COMMIT_EDGE, number, edge, (), context.span, ())


class CommitMapper:
    """Maps commits by templates that it learns from decoded commits."""

    def __init__(self, agains: PendingRepeats) -> None:
        self._templates: TemplateCache[_CommitTemplate] = TemplateCache(Committed.__name__, _VARYING)
        self._agains = agains
        self.learned_bytes = 0
        """The bytes of the events that templates were learned from."""

    def rows(self, data: bytes, append_time: int | None) -> tuple[EventArrival, Iterator[Row]] | None:
        """Return a commit's arrival and rows. Return None if a value is invalid, or if no template matches."""
        fit = self._templates.match(data)
        if fit is None:
            return None
        template, values = fit.value, fit.values
        fields: list[Any] = values
        producer, sequence, number, moment = fields[:_APPLICATION]
        if sequence < 0 or number < 0 or not 0 <= moment < LATEST or not template.is_sound(fields):
            return None
        time = cap_time(moment, append_time)
        stamp = make_stamp(time, producer, sequence)
        self._agains.record(template.job_rows, fields[template.run], time, stamp)
        return EventArrival(producer, number, time), template.rows(fields, time, stamp)

    def learn(self, data: bytes, event: Committed) -> None:
        """Learn a template from a commit. Split commits and uncertain ones aren't learned: `map_event` handles them."""
        if event.part is not None or not _is_certain(event):
            return
        self.learned_bytes += len(data)
        learned, node = self._templates.learn(data)
        self._templates.keep(node, _CommitTemplate(event, learned))

    def forget(self) -> None:
        self._templates.clear()
        self.learned_bytes = 0


def _facts(event: Committed, at: Template) -> Callable[[Sequence[Any], int], tuple[Value, ...]]:
    """What stands in a commit's row beside its key."""
    parent = job_name_key(event.parent_job)
    fingerprint, user, operation = event.fingerprint, clean_text(event.user), clean_text(event.operation)
    run, batch, statement = at.place("run"), at.place("batch_id"), at.place("statement")

    def facts(values: Sequence[Any], time: int) -> tuple[Value, ...]:
        application = clean_text(values[_APPLICATION])
        return (
            *parent,
            values[run],
            fingerprint,
            values[batch],
            values[statement],
            time,
            application,
            user,
            operation,
        )

    return facts


def _is_certain(event: Committed) -> bool:
    """Return False if a snapshot is one of several candidates, or if an index is invalid."""
    end = len(event.inputs)
    made = (index for each in event.outputs for index in each.made_from or ())
    candidates = [*(each.candidates for each in event.inputs), *(each.candidates for each in event.outputs)]
    return not any(candidates) and all(0 <= index < end for index in made)
