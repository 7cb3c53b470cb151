"""Events of known shapes are mapped by columns, to what the law says of each of them; what isn't plain is left."""

from __future__ import annotations

from datetime import datetime, timezone
from uuid import UUID

import numpy as np
import pytest

from headwater.events import AlterTable, Committed, Event, JobLineage, JobStatusChanged
from headwater.events.avro import Codec, DecodeError
from headwater.events.avro.framing import HEADER_BYTES
from headwater.events.changes import SetProperty
from headwater.lineage.mapping import BatchMapper, map_event
from headwater.lineage.mapping.column_rows import groups_of
from headwater.lineage.rows import KINDS, Row, RowSet
from headwater.lineage.rows.copy_format import decode_copy_row
from headwater.testing.examples import EXAMPLES
from tests.kit.lineage.templates import CountingCodec, of_one_shape

CODEC = Codec()
NOW = 1_767_000_000_000_000


def rows_of(mapper: BatchMapper) -> list[Row]:
    batch = mapper.drain()
    return [*batch.rows, *(decode_copy_row(kind, data) for kind in KINDS for data in batch.copies.ordered(kind))]


def digest(rows: list[Row]) -> str:
    state = RowSet()
    state.merge(rows)
    return state.digest()


def by_law(events: list[Event]) -> str:
    return digest([row for event in events for row in map_event(event, NOW)])


def mapper_that_knows(event: Event, codec: Codec | None = None) -> BatchMapper:
    mapper = BatchMapper(codec, packs=True, fewest=1)
    mapper.add(CODEC.encode(event), NOW)
    mapper.drain()
    return mapper


@pytest.mark.parametrize("kind", [Committed, JobLineage, AlterTable, JobStatusChanged])
def test_only_the_first_event_of_a_shape_is_decoded(kind: type[Event]) -> None:
    events, codec = of_one_shape(kind, 20), CountingCodec()
    mapper = BatchMapper(codec, packs=True, fewest=1)
    assert mapper.add_known([CODEC.encode(each) for each in events], [NOW] * 20) == []
    assert codec.decoded == 1
    assert digest(rows_of(mapper)) == by_law(events)


@pytest.mark.parametrize("event", [each for each in EXAMPLES if isinstance(each, Committed) and each.outputs])
def test_texts_of_any_length_stand_in_rows_of_one_batch(event: Committed) -> None:
    names = ["app", "application", "", "app", "\0", 'a"b', "a\\b", "é", "\x7f", "a\nb", "app_2"]
    events: list[Event] = [
        event.model_copy(update={"application": name, "sequence": n, "family_sequence": n, "barrier": n - 5})
        for n, name in enumerate(names, 1)
    ]
    mapper = mapper_that_knows(event.model_copy(update={"application": "first"}))
    data = [CODEC.encode(each) for each in events]
    left = mapper.add_known(data, [NOW] * len(data))
    assert left == ([] if event.part is None else list(range(len(names)))), "parts aren't learned"
    for each in left:
        mapper.add(data[each], NOW)
    assert digest(rows_of(mapper)) == by_law(events)


def test_texts_within_json_are_rendered() -> None:
    first = next(each for each in EXAMPLES if isinstance(each, AlterTable))
    events: list[Event] = [
        first.model_copy(
            update={"changes": (SetProperty(key="owner", value=value),), "sequence": n, "family_sequence": n}
        )
        for n, value in enumerate(["a", "team_12", "", 'qu"ote\\', "\0\n", "é", "team 3"], 1)
    ]
    mapper = mapper_that_knows(events[0])
    data = [CODEC.encode(each) for each in events]
    assert mapper.add_known(data, [NOW] * len(data)) == []
    assert digest(rows_of(mapper)) == by_law(events)


@pytest.mark.parametrize("field", ["sequence", "family_sequence"])
def test_numbers_that_no_model_allows_are_left(field: str) -> None:
    good, bad, last = of_one_shape(Committed, 3)
    mapper = mapper_that_knows(good)
    data = [CODEC.encode(good), CODEC.encode(bad.model_copy(update={field: -1})), CODEC.encode(last)]
    assert mapper.add_known(data, [NOW] * 3) == [1]
    with pytest.raises(DecodeError):
        mapper.add(data[1], NOW)
    assert digest(rows_of(mapper)) == by_law([good, last])


def test_bytes_that_are_no_event_are_left() -> None:
    events = [each.model_copy(update={"application": "no UTF-8"}) for each in of_one_shape(Committed, 40)]
    mapper = mapper_that_knows(events[0])
    data = [CODEC.encode(each) for each in events]
    data[1] = data[1][:-1]
    data[2] += b"\0"
    data[3] = data[3][:HEADER_BYTES]
    data[4] = b"no event"
    data[5] = data[5][:HEADER_BYTES] + b"\xff" * 40
    data[6] = data[6].replace(b"no UTF-8", b"no UTF-\xff")
    assert mapper.add_known(data, [NOW] * 40) == [1, 2, 3, 4, 5, 6]
    assert digest(rows_of(mapper)) == by_law([events[0], *events[7:]])


def test_an_event_that_comes_twice_is_one_row() -> None:
    event, other = of_one_shape(Committed, 2)
    later = event.model_copy(update={"time": datetime(2025, 1, 1, tzinfo=timezone.utc), "run": UUID(int=9)})
    events = [event, later, event, other]
    mapper = mapper_that_knows(event)
    assert mapper.add_known([CODEC.encode(each) for each in events], [NOW] * 4) == []
    copies = mapper.drain().copies
    for kind in KINDS:
        ids = [decode_copy_row(kind, data).id for data in copies.ordered(kind)]
        assert len(set(ids)) == len(ids)
    mapper.add_known([CODEC.encode(each) for each in events], [NOW] * 4)
    assert digest(rows_of(mapper)) == by_law(events)


def test_few_events_are_mapped_one_by_one() -> None:
    data = [CODEC.encode(each) for each in of_one_shape(Committed, 9)]
    assert BatchMapper(packs=True, fewest=10).add_known(data, [NOW] * 9) == list(range(9))
    assert BatchMapper(packs=False, fewest=1).add_known(data, [NOW] * 9) == list(range(9))


def test_rows_are_alike_only_if_all_their_sizes_are_however_large() -> None:
    """Three sizes of up to 2**40 are more than a number of 64 bits can tell apart."""
    large = (1 << 40) - 1
    sizes = [(0, large, large), (1, large, large), (0, large, large), (0, 3, large)]
    columns = [np.array(each, np.int64) for each in zip(*sizes, strict=True)]
    assert sorted(each.tolist() for each in groups_of(columns)) == [[0, 2], [1], [3]]
