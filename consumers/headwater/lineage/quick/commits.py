"""The rows of a commit out of its bytes. What it says of tables and jobs was told before, nearly always, and passed all
checks then; what is left are numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from headwater.events.avro.moulds import Learned, Moulds, Path
from headwater.events.avro.plain import LATEST
from headwater.events.jobs import Committed, Input, Output
from headwater.lineage.law import changes
from headwater.lineage.law import commits as law
from headwater.lineage.law.telling import capped, clean, job_of, stamp_of
from headwater.lineage.quick.again import Agains, Telling
from headwater.lineage.rows import Kind, Row, Told
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.kinds import Span
from headwater.lineage.rows.values import HASH_BYTES, Value, encoded

_MOST: Final = 1 << 13
"""So many moulds are remembered; then all are forgotten, and learned anew."""
_MOST_BYTES: Final = 8 << 20
"""Of the events that they were made from, which can be a megabyte each."""
_ENVELOPE: Final = ("producer", "sequence", "family_sequence", "time", "application")
_VARYING: Final = (
    *_ENVELOPE,
    *("run", "statement", "barrier", "incarnation", "batch_id"),
    *("snapshot", "version", "parent", "rows", "bytes"),
)
_PRODUCER, _SEQUENCE, _FAMILY_SEQUENCE, _TIME, _APPLICATION = range(len(_ENVELOPE))
_EDGE: Final = encoded((t.EDGE.name,))
_COUNTS: Final = ("rows", "bytes")
_COMMIT: Final = 2
"""The columns that name a commit, at the beginning of what it read or wrote."""
_NUMBER: Final = b"i%d;"
_NAMED: Final = b"b%d:%%b%b" % (HASH_BYTES, _NUMBER)
_WHOSE: Final = b"%bb%d:%%b" % (_NUMBER, HASH_BYTES)
"""Sixteen bytes and a number, and the other way round, as `values.encoded` writes them, in a format."""
Picked: TypeAlias = "Callable[[Sequence[Any]], tuple[Any, ...]]"


class Arrival(NamedTuple):
    """Which of a producer's events this was, and when."""

    producer: bytes
    number: int
    time: int


class _Whose(NamedTuple):
    """A commit on its way into rows."""

    barrier: int
    commit: bytes
    span: Span
    stamp: bytes


class Paths:
    """Some fields of a mould, two at least: `picked` gives their values, None for what isn't there."""

    def __init__(self, at: Learned, paths: Sequence[Path]) -> None:
        self.places = [at.place(*each) for each in paths]
        self.picked: Picked = itemgetter(*self.places)
        self.present = [place for place in self.places if place >= 0]
        self.has_texts = not at.texts.isdisjoint(self.present)


class _Place:
    """An input or an output: what is the same in each commit, and where the other values are.

    Which fields are there is the same in each too, so what is hashed is one format of numbers, but for texts.
    """

    __slots__ = ("_end", "_format", "_kind", "_middle", "_numbers", "_present", "_rest", "counted", "counts")

    def __init__(self, kind: Kind, key: tuple[Value, ...], numbers: Paths, counts: Paths) -> None:
        self._kind = kind
        self._middle, self._end = key[_COMMIT : len(key) - 1 - len(numbers.places)], key[-1:]
        self._numbers = numbers.picked
        self._present = _picked(numbers.present)
        beginning = _escaped(encoded((kind.name,))) + _WHOSE + _escaped(encoded(self._middle))
        self._rest = encoded(self._end) if numbers.has_texts else None
        if numbers.has_texts:
            self._format = beginning
        else:
            told = b"".join(_NUMBER if place >= 0 else encoded((None,)) for place in numbers.places)
            self._format = beginning + told + _escaped(encoded(self._end))
        self.counts, self.counted = counts.picked, counts.present

    def row(self, values: Sequence[Value], whose: _Whose, told: Told) -> Row:
        numbers = self._numbers(values)
        if self._rest is None:
            named = self._format % (whose.barrier, whose.commit, *self._present(values))
        else:
            numbers = tuple([clean(each) if isinstance(each, str) else each for each in numbers])
            named = self._format % whose[:_COMMIT] + encoded(numbers) + self._rest
        key = (whose.barrier, whose.commit, *self._middle, *numbers, *self._end)
        return Row(self._kind, blake2b(named, digest_size=HASH_BYTES).digest(), key, (), whose.span, (told,))


def _picked(places: Sequence[int]) -> Picked:
    """A tuple, of however many."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda values: tuple([values[place] for place in places])


def _escaped(data: bytes) -> bytes:
    """As it stands in a format."""
    return data.replace(b"%", b"%%")


class _Source(_Place):
    __slots__ = ("_facts",)

    def __init__(self, number: int, source: Input, at: Learned) -> None:
        mine = ("inputs", number)
        named: list[Path] = [("snapshot",), ("version",), ("since", "snapshot"), ("since", "version")]
        numbers = Paths(at, [(*mine, *each) for each in named])
        counts = Paths(at, [(*mine, each) for each in _COUNTS])
        super().__init__(t.READ, law.read_key((0, b""), source), numbers, counts)
        self._facts = law.read_facts(source)[: -len(_COUNTS)]

    def read(self, values: Sequence[Value], whose: _Whose) -> Row:
        return self.row(values, whose, Told(whose.stamp, (*self._facts, *self.counts(values))))


class _Sink(_Place):
    __slots__ = ("_facts", "_parent", "made")

    def __init__(self, number: int, output: Output, count: int, at: Learned) -> None:
        mine = ("outputs", number)
        numbers = Paths(at, [(*mine, each) for each in ("snapshot", "version")])
        counts = Paths(at, [(*mine, each) for each in _COUNTS])
        super().__init__(t.WRITE, law.write_key((0, b""), output), numbers, counts)
        made = output.made_from
        is_all = made is not None and len(set(made)) == count
        made_from = law.UNKNOWN if made is None else law.ALL if is_all else law.SOME
        self._facts = law.write_facts(output, made_from)[1 : -len(_COUNTS)]
        self._parent = at.place(*mine, "parent")
        self.made: tuple[int, ...] = () if made is None or is_all else made

    def written(self, values: Sequence[Value], whose: _Whose) -> Row:
        facts = (values[self._parent], *self._facts, *self.counts(values))
        return self.row(values, whose, Told(whose.stamp, facts))


class _Mould:
    """Commits of one job that read and write the same tables."""

    __slots__ = ("_counted", "_format", "barrier", "facts", "incarnation", "job", "run", "sinks", "sources", "telling")

    def __init__(self, event: Committed, at: Learned) -> None:
        self.telling = Telling(changes(event))
        self.job, self.run, self.barrier = job_of(event.job), at.place("run"), at.place("barrier")
        self.incarnation = at.place("incarnation")
        self._format = _escaped(encoded((t.COMMIT.name, *self.job))) + _NAMED
        self.sources = [_Source(number, each, at) for number, each in enumerate(event.inputs)]
        self.sinks = [_Sink(number, each, len(event.inputs), at) for number, each in enumerate(event.outputs)]
        self.facts = _facts(event, at)
        counts = [at.place("batch_id"), *(each for place in (*self.sources, *self.sinks) for each in place.counted)]
        self._counted = _picked([place for place in counts if place >= 0])

    def is_sound(self, values: Sequence[Any]) -> bool:
        """What models check of numbers."""
        return min(self._counted(values), default=0) >= 0

    def rows(self, values: Sequence[Any], time: int, stamp: bytes) -> Iterator[Row]:
        """But for those that are told again."""
        barrier, incarnation = values[self.barrier], values[self.incarnation]
        if incarnation is None:
            incarnation = values[_PRODUCER]
        key = (*self.job, incarnation, barrier)
        commit = blake2b(self._format % (incarnation, barrier), digest_size=HASH_BYTES).digest()
        whose = _Whose(barrier, commit, Span(time, time), stamp)
        yield Row(t.COMMIT, commit, key, (), whose.span, (Told(stamp, self.facts(values, time)),))
        reads = [source.read(values, whose) for source in self.sources]
        yield from reads
        for sink in self.sinks:
            row = sink.written(values, whose)
            yield row
            for index in sink.made:
                edge = (barrier, row.id, reads[index].id)
                number = blake2b(_EDGE + encoded(edge), digest_size=HASH_BYTES).digest()
                yield Row(t.EDGE, number, edge, (), whose.span, ())


class QuickCommits:
    def __init__(self, agains: Agains) -> None:
        self._moulds: Moulds[_Mould] = Moulds(Committed.__name__, _VARYING)
        self._agains = agains
        self._bytes = 0

    def rows(self, data: bytes, appended: int | None) -> tuple[Arrival, Iterator[Row]] | None:
        """Of one commit. None where something in it is new, or isn't sound."""
        fit = self._moulds.fit(data)
        if fit is None:
            return None
        mould, values = fit
        told: list[Any] = values
        producer, sequence, number, moment = told[:_APPLICATION]
        if sequence < 0 or number < 0 or not 0 <= moment < LATEST or not mould.is_sound(told):
            return None
        time = capped(moment, appended)
        stamp = stamp_of(time, producer, sequence)
        self._agains.tell(mould.telling, told[mould.run], time, stamp)
        return Arrival(producer, number, time), mould.rows(told, time, stamp)

    def learn(self, data: bytes, event: Committed) -> None:
        """What commits like this one have in common. One that says more than a plain one does stays for the law."""
        if event.part is not None or not _is_certain(event):
            return
        self._bytes += len(data)
        if len(self._moulds) >= _MOST or self._bytes > _MOST_BYTES:
            self._moulds.clear()
            self._bytes = len(data)
        learned, knot = self._moulds.learn(data)
        self._moulds.keep(knot, _Mould(event, learned))


def _facts(event: Committed, at: Learned) -> Callable[[Sequence[Any], int], tuple[Value, ...]]:
    """What stands in a commit's row beside its key."""
    parent = job_of(event.parent_job)
    fingerprint, user, operation = event.fingerprint, clean(event.user), clean(event.operation)
    run, batch, statement = at.place("run"), at.place("batch_id"), at.place("statement")

    def facts(values: Sequence[Any], time: int) -> tuple[Value, ...]:
        application = clean(values[_APPLICATION])
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
    """Snapshots that are one of several, and indexes that lead nowhere, are for the law."""
    end = len(event.inputs)
    made = (index for each in event.outputs for index in each.made_from or ())
    candidates = [*(each.candidates for each in event.inputs), *(each.candidates for each in event.outputs)]
    return not any(candidates) and all(0 <= index < end for index in made)
