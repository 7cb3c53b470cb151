"""What is remembered of names, because events repeat them, is bounded in number and in size.

No other test finds a name of many kilobytes that is kept for the life of a writer.
"""

from __future__ import annotations

from uuid import UUID

import pytest

from headwater.events import Committed, DatasetId, JobName, Output
from headwater.events.avro import Codec
from headwater.events.avro import quick_reader as reader
from headwater.events.avro.framing import HEADER_BYTES
from headwater.lineage.mapping import map_event, row_builder

CODEC = Codec()


def commit(name: str, number: int = 1) -> Committed:
    output = Output(dataset=DatasetId(namespace="s3://lake", name=name), snapshot=number)
    job = JobName(name=f"etl-{number}")
    return Committed(
        producer=UUID(int=5), sequence=number, family_sequence=number, job=job, barrier=number, outputs=(output,)
    )


def test_places_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    places: dict[object, object] = {}
    monkeypatch.setattr(row_builder, "_PLACES", places)
    monkeypatch.setattr(row_builder, "_MOST_PLACES", 3)
    sizes = []
    for number in range(10):
        event = commit(f"orders-{number}")
        assert list(map_event(event)) == list(map_event(event)), "a place that is remembered makes the same rows"
        sizes.append(len(places))
    assert (max(sizes), min(sizes)) == (3, 1)
    places.clear()
    assert list(map_event(commit("x" * 2_000)))
    assert places == {}


def test_models_that_are_known_by_their_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_MOST_REPEATED", 3)
    made: list[dict[object, object]] = []
    for of in ("_Known", "_Uuids"):
        kind = getattr(reader, of)
        monkeypatch.setattr(reader, of, type(of, (kind,), {"__init__": lambda self, kept=made: kept.append(self)}))
    read = reader.quick_reader.__wrapped__(Committed)
    assert read is not None
    for number in range(1, 10):
        event = commit("x" * (1 + 2_000 * (number % 2)), number)
        assert read(CODEC.encode(event), HEADER_BYTES) == event
        assert all(len(each) <= 3 for each in made)
    assert any(made)
    assert all(len(key) <= 1_000 for each in made for key in each if isinstance(key, bytes))
