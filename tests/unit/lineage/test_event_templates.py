"""Events of a known shape are mapped without being decoded, unless the law does with them what no slot explains."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headwater.events import AlterTable, Committed, Event, JobLineage, JobStatusChanged
from headwater.events.avro import Codec
from headwater.lineage.mapping import BatchMapper, batch_mapper, map_event, row_comparison
from headwater.lineage.mapping.event_templates import LEARNABLE, EventTemplates
from headwater.lineage.rows import Row, RowSet
from headwater.lineage.rows import tables as t
from tests.kit.lineage.templates import CountingCodec, example, of_one_shape

CODEC = Codec()
KINDS = (Committed, JobLineage, AlterTable, JobStatusChanged)


def digest(rows: Iterator[Row] | list[Row]) -> str:
    state = RowSet()
    state.merge(rows)
    return state.digest()


def test_each_learnable_kind_is_tested() -> None:
    assert {each.__name__ for each in KINDS} == set(LEARNABLE)


@pytest.mark.parametrize("kind", KINDS)
def test_a_known_shape_is_decoded_once(kind: type[Event]) -> None:
    codec = CountingCodec()
    mapper, events = BatchMapper(codec), of_one_shape(kind, 20)
    for each in events:
        mapper.add(CODEC.encode(each))
    assert codec.decoded == 1
    assert digest(mapper.drain().rows) == digest([row for each in events for row in map_event(each)])


def test_rows_that_no_slot_explains_are_left_to_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """A law that squares a number, as an example of what nobody thought of."""

    def squaring(event: Event, append_time: int | None = None) -> Iterator[Row]:
        for row in map_event(event, append_time):
            yield row._replace(maxima=(event.sequence**2, *row.maxima[1:])) if row.kind == t.WRITE else row

    for module in (batch_mapper, row_comparison):
        monkeypatch.setattr(module, "map_event", squaring)
    codec = CountingCodec()
    mapper, events = BatchMapper(codec), of_one_shape(Committed, 5)
    for each in events:
        mapper.add(CODEC.encode(each))
    assert codec.decoded == len(events)
    assert digest(mapper.drain().rows) == digest([row for each in events for row in squaring(each)])


@pytest.mark.slow
def test_shapes_that_never_come_again_are_seldom_learned() -> None:
    templates = EventTemplates(JobStatusChanged.__name__)
    first = example(JobStatusChanged)
    for n in range(1, 3_001):
        assert first.job is not None
        event = first.model_copy(update={"sequence": n, "job": first.job.model_copy(update={"name": f"job-{n}"})})
        templates.learn(CODEC.encode(event), event, None, list(map_event(event)))
    assert 1_000 < len(templates) < 1_100
