"""Edges between columns come back from an event's bytes as they were; bytes that claim others are refused.

No other test gives the decoder numbers that point at nothing, or a few bytes that name one long text many times.
"""

from __future__ import annotations

import io
from typing import Any

import pytest
from fastavro import schemaless_reader, schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from headwater.events import ColumnLineage, DatasetId, Event, JobLineage
from headwater.events.avro import MAX_EVENT_BYTES, Codec, DecodeError, Problem, current_schema
from headwater.events.avro.framing import HEADER_BYTES
from headwater.events.clock import uuid7
from headwater.events.column_lineage import MAX_EDGE_TEXT, MAX_EDGES, Derivation, pack_edges, unpack_edges
from headwater.events.jobs import SinkSchema, SourceSchema
from headwater.events.tables import Column
from headwater.testing.strategies import models

pytestmark = pytest.mark.slow

CODEC = Codec()
SCHEMA = current_schema(JobLineage)
EDGE = {"output": 0, "input": 0, "derivation": "IDENTITY", "sources": [0], "targets": [0], "expressions": [0]}


def lineage_of(edges: list[ColumnLineage], columns: int = 0) -> JobLineage:
    fields = tuple(Column(name=f"column_{n:04}", type='"string"') for n in range(columns))
    source, sink = (DatasetId(namespace="s3://lake", name=name) for name in ("orders", "daily"))
    return JobLineage(
        producer=uuid7(),
        sequence=1,
        family_sequence=1,
        fingerprint=bytes(16),
        inputs=(SourceSchema(dataset=source, columns=fields),),
        outputs=(SinkSchema(dataset=sink, columns=fields),),
        columns=tuple(edges),
    )


def copied(number: int) -> ColumnLineage:
    path = (f"column_{number:04}",)
    return ColumnLineage(output=0, input=0, source=path, target=path, derivation=Derivation.IDENTITY)


def written(packed: dict[str, Any]) -> bytes:
    """An event whose edges are these, right or wrong."""
    good = CODEC.encode(lineage_of([]))
    content: Any = schemaless_reader(io.BytesIO(good[HEADER_BYTES:]), SCHEMA.parsed, None)
    body = io.BytesIO()
    schemaless_writer(body, SCHEMA.parsed, {**content, "columns": packed})
    return good[:HEADER_BYTES] + body.getvalue()


def read(packed: dict[str, Any]) -> Event:
    event = CODEC.decode(written(packed))
    assert isinstance(event, JobLineage)
    return event


@given(st.lists(models(ColumnLineage), max_size=12))
def test_edges_come_back_in_their_order(edges: list[ColumnLineage]) -> None:
    assert [ColumnLineage(**each) for each in unpack_edges(pack_edges(edges))] == edges


def test_2000_columns_take_40_kilobytes() -> None:
    """An edge by itself took 85 bytes."""
    empty, full = (len(CODEC.encode(lineage_of(edges))) for edges in ([], [copied(n) for n in range(2_000)]))
    assert full - empty <= 40_000


def test_50000_edges_fit_into_one_event_with_the_schemas_of_their_tables() -> None:
    edges = [
        copied(target).model_copy(update={"source": (f"column_{(target * 7 + source * 13) % 5_000:04}",)})
        for target in range(5_000)
        for source in range(10)
    ]
    event = lineage_of(edges, columns=5_000)
    data = CODEC.encode(event)
    assert len(data) <= MAX_EVENT_BYTES
    assert CODEC.decode(data) == event
    one_by_one = [each.model_copy(update={"input": n % 10}) for n, each in enumerate(edges)]
    assert len(CODEC.encode(lineage_of(one_by_one))) <= MAX_EVENT_BYTES, "no two neighbours are in a group"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sources": [1]}, "points at place 1 of 1"),
        ({"targets": [2**31 - 1]}, "points at place 2147483647 of 1"),
        ({"sources": [-1]}, "or at -1"),
        ({"targets": [-(2**31)]}, "or at -2147483648"),
        ({"expressions": [1]}, "points at place 1 of 1"),
        ({"sources": []}, "is empty"),
        ({"targets": [0, 0]}, "2 places of paths or expressions for 1 edges"),
        ({"sources": [0, 0]}, "1 places of paths or expressions for 2 edges"),
        ({"output": -1}, "columns.0.output: Input should be greater than or equal to 0"),
        ({"input": -1}, "columns.0.input: Input should be greater than or equal to 0"),
    ],
    ids=str,
)
def test_edges_that_point_at_nothing_are_refused(change: dict[str, Any], words: str) -> None:
    packed = {"paths": [["a"]], "expressions": ["x"], "groups": [{**EDGE, **change}]}
    with pytest.raises(DecodeError, match=words) as caught:
        read(packed)
    assert caught.value.problem is Problem.INVALID


def test_a_path_without_a_name_is_refused() -> None:
    with pytest.raises(DecodeError, match="source") as caught:
        read({"paths": [[]], "expressions": ["x"], "groups": [EDGE]})
    assert caught.value.problem is Problem.INVALID


@pytest.mark.parametrize(
    "packed",
    [
        {"paths": [["a"]], "expressions": [], "groups": [{**EDGE, "sources": [0] * 900_000, "targets": []}]},
        {"paths": [["a"]], "expressions": [], "groups": [{**EDGE, "targets": []}] * 60_000},
        {"paths": [["a"]], "expressions": ["x" * 900_000], "groups": [{**EDGE, "sources": [0] * 30_000}]},
        {"paths": [["x" * 900_000]], "expressions": [], "groups": [{**EDGE, "sources": [0] * 30_000, "targets": []}]},
    ],
    ids=["edges", "groups", "expression", "path"],
)
def test_few_bytes_do_not_become_much(packed: dict[str, Any]) -> None:
    for group in packed["groups"]:
        group["expressions"] = [0] * len(group["sources"]) if packed["expressions"] else []
        group["targets"] = [0] * len(group["sources"]) if group["targets"] else []
    data = written(packed)
    assert len(data) <= MAX_EVENT_BYTES
    with pytest.raises(DecodeError, match=r"are allowed|characters") as caught:
        CODEC.decode(data)
    assert caught.value.problem is Problem.INVALID


def test_the_most_that_can_be_read_is_bounded() -> None:
    longest = MAX_EDGE_TEXT // MAX_EDGES - 2
    group = {**EDGE, "sources": [0] * MAX_EDGES, "targets": [], "expressions": [0] * MAX_EDGES}
    packed = {"paths": [["a"]], "expressions": ["x" * longest], "groups": [group]}
    assert len(unpack_edges(packed)) == MAX_EDGES
    with pytest.raises(ValueError, match="characters"):
        unpack_edges({**packed, "expressions": ["x" * (longest + 1)]})


_PLACES = st.lists(st.integers(-3, 4) | st.integers(-(2**31), 2**31 - 1), max_size=4)
_GROUPS = st.fixed_dictionaries(
    {
        "output": st.integers(-(2**63), 2**63 - 1),
        "input": st.integers(0, 3),
        "derivation": st.sampled_from([each.value for each in Derivation]),
        "sources": _PLACES,
        "targets": _PLACES,
        "expressions": _PLACES,
    }
)


@given(
    st.lists(st.lists(st.text(max_size=3), max_size=2), max_size=4),
    st.lists(st.text(max_size=3), max_size=3),
    st.lists(_GROUPS, max_size=4),
)
def test_any_numbers_give_an_event_or_one_typed_error(
    paths: list[list[str]], expressions: list[str], groups: list[dict[str, Any]]
) -> None:
    data = written({"paths": paths, "expressions": expressions, "groups": groups})
    try:
        event = CODEC.decode(data)
    except DecodeError as error:
        if error.problem is not Problem.INVALID:
            pytest.fail(f"the numbers are wrong, not the bytes: {error}")
        return
    assert isinstance(event, JobLineage)
    assert len(event.columns) == sum(len(group["sources"]) for group in groups)
    assert CODEC.decode(CODEC.encode(event)) == event
