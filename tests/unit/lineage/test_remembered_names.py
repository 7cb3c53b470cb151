"""What is remembered of names, because events repeat them, is bounded in number and in size.

No other test finds a name of many kilobytes that is kept for the life of a writer.
"""

from __future__ import annotations

from uuid import UUID

import pytest

from headwater.events import Committed, DatasetId, JobLineage, JobName, Output
from headwater.events.avro import Codec, known_values, reader_source
from headwater.events.avro import quick_reader as reader
from headwater.events.avro.framing import HEADER_BYTES
from headwater.lineage.mapping import lineage_content, map_event
from headwater.lineage.mapping import places as places_module
from headwater.testing.examples import EXAMPLES

CODEC = Codec()


def commit(name: str, number: int = 1) -> Committed:
    output = Output(dataset=DatasetId(namespace="s3://lake", name=name), snapshot=number)
    job = JobName(name=f"etl-{number}")
    return Committed(
        producer=UUID(int=5), sequence=number, family_sequence=number, job=job, barrier=number, outputs=(output,)
    )


def test_places_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    places: dict[object, object] = {}
    monkeypatch.setattr(places_module, "_PLACES", places)
    monkeypatch.setattr(places_module, "_MOST_NAMES", 3)
    sizes = []
    for number in range(10):
        event = commit(f"orders-{number}")
        assert list(map_event(event)) == list(map_event(event)), "a place that is remembered makes the same rows"
        sizes.append(len(places))
    assert (max(sizes), min(sizes)) == (3, 1)
    places.clear()
    assert list(map_event(commit("x" * 2_000)))
    assert places == {}
    for number in range(20):
        (output,) = commit("orders").outputs
        uses = commit("orders").model_copy(update={"outputs": (output.model_copy(update={"schema_id": number}),)})
        assert list(map_event(uses)) == list(map_event(uses))
        assert len(places["orders"]) <= places_module._MOST_USES  # type: ignore[arg-type]  # pyright: ignore[reportPrivateUsage]


def test_models_that_are_known_by_their_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_values, "MOST_MODELS", 3)
    made: list[dict[object, object]] = []
    for module, of in ((reader, "KnownModels"), (reader_source, "KnownUuids")):
        kind = getattr(module, of)
        monkeypatch.setattr(module, of, type(of, (kind,), {"__init__": lambda self, kept=made: kept.append(self)}))
    read = reader.quick_reader.__wrapped__(Committed)
    assert read is not None
    for number in range(1, 10):
        event = commit("x" * (1 + 2_000 * (number % 2)), number)
        assert read(CODEC.encode(event), HEADER_BYTES) == event
        assert all(len(each) <= 3 for each in made)
    assert any(made)
    assert all(len(key) <= 1_000 for each in made for key in each if isinstance(key, bytes))


def lineage(number: int, expression: str) -> JobLineage:
    (example,) = [each for each in EXAMPLES if isinstance(each, JobLineage)]
    edges = tuple(each.model_copy(update={"expression": expression}) for each in example.columns)
    return example.model_copy(update={"fingerprint": number.to_bytes(16, "big"), "columns": edges})


def test_spans_that_are_known_by_their_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of one fingerprint begin alike, and each is read as what it is."""
    made: list[known_values.KnownSpans] = []

    class Kept(known_values.KnownSpans):
        def __init__(self, share: int) -> None:
            super().__init__(share)
            made.append(self)

    monkeypatch.setattr(reader, "KnownSpans", Kept)
    monkeypatch.setattr(known_values, "MOST_BYTES", 10_000)
    monkeypatch.setattr(known_values, "LONGEST_SPAN", 4_000)
    read = reader.quick_reader.__wrapped__(JobLineage)
    assert read is not None
    texts = ["a", "b", "x" * 5_000, *map(str, range(30))]
    for number, text in [(number, text) for number in (1, 2, 1) for text in texts]:
        event = lineage(number, text)
        assert read(CODEC.encode(event), HEADER_BYTES) == event
        assert read(CODEC.encode(event), HEADER_BYTES) == event
        for each in made:
            kept = list(each)
            assert sum(map(len, kept)) == each.size <= 10_000
            assert all(len(span) <= 4_000 for span in kept)
    assert any(list(each) for each in made)


def test_contents_of_job_lineage_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 2 * lineage_content.LineageContent(lineage(1, "a")).size
    monkeypatch.setattr(lineage_content, "_MOST_VALUES", most)
    contents = lineage_content.LineageContents()
    for number in (1, 2, 3, 1, 3):
        for text in ("a", "b"):
            event = lineage(number, text)
            content = contents.of(event)
            assert contents.of(lineage(number, text)) is content, "it is the same again"
            assert content.edges.keys() == lineage_content.LineageContent(event).edges.keys()
            assert contents.size <= most
