"""Parts are events that can be stored alone, and together they are the whole."""

from __future__ import annotations

from random import Random
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from headwater.events.avro import Codec
from headwater.events.catalog import CatalogContext, CreateTable
from headwater.events.column_lineage import ColumnLineage, Derivation
from headwater.events.envelope import Event
from headwater.events.ids import uuid7
from headwater.events.jobs import (
    Committed,
    ErrorDetails,
    Input,
    JobLineage,
    Output,
    SinkSchema,
    SourceSchema,
    StatementFailed,
)
from headwater.events.names import DatasetId, TableName
from headwater.events.parts import PartsError, merge_parts, split_event
from headwater.events.sizes import estimated_size
from headwater.events.tables import Column, Table
from headwater.testing.strategies import events

pytestmark = pytest.mark.slow


def sequenced(parts: tuple[Event, ...]) -> list[Event]:
    """As a producer numbers them."""
    return [part.model_copy(update={"sequence": part.sequence % 2**40 + n}) for n, part in enumerate(parts)]


def whole(event: Event) -> Event:
    first = {"first_input": 0} if isinstance(event, JobLineage) else {}
    return event.model_copy(update={"part": None, "sequence": event.sequence % 2**40, **first})


def _by_input(event: Event) -> Event:
    """With edges in the order of their inputs, in which parts tell them."""
    if not isinstance(event, JobLineage):
        return event
    last = len(event.inputs) - 1
    edges = sorted(event.columns, key=lambda each: min(each.input, last))
    return event.model_copy(update={"columns": tuple(edges)})


@given(events(), st.integers(100, 3_000), st.randoms())
def test_joined_parts_are_the_event(event: Event, limit: int, random: Random) -> None:
    original = whole(event)
    parts = sequenced(split_event(original, limit))
    random.shuffle(parts)
    assert _by_input(merge_parts(parts)) == _by_input(original)


@st.composite
def job_lineages(draw: st.DrawFn) -> JobLineage:
    """With many inputs, of a few columns each, and edges between them in any order."""
    tables = draw(st.integers(2, 30))
    columns = tuple(Column(name=f"c{n}", type='"string"') for n in range(draw(st.integers(0, 8))))
    inputs = (DatasetId(namespace="file", name=f"t{n}") for n in range(tables))
    edge = st.builds(
        ColumnLineage,
        output=st.just(0),
        input=st.integers(0, tables),  # one that isn't there stays what it was
        source=st.sampled_from([("a",), ("b", "c")]),
        target=st.sampled_from([None, ("x",), ("y",)]),
        derivation=st.sampled_from(Derivation),
    )
    return JobLineage(
        fingerprint=bytes(16),
        inputs=tuple(SourceSchema(dataset=each, columns=columns) for each in inputs),
        outputs=(SinkSchema(dataset=DatasetId(namespace="file", name="out"), columns=columns),),
        columns=tuple(draw(st.lists(edge, max_size=60))),
        producer=uuid7(),
    )


@given(job_lineages(), st.integers(600, 4_000), st.randoms())
def test_a_part_of_job_lineage_has_some_inputs_with_their_edges(event: JobLineage, limit: int, random: Random) -> None:
    """Each part had all inputs: 2,000 sources made 9 MB."""
    parts = [cast("JobLineage", each) for each in sequenced(split_event(event, limit))]
    last = len(event.inputs) - 1
    for part in parts:
        assert part.inputs
        places = range(part.first_input, part.first_input + len(part.inputs))
        assert [each.dataset for each in part.inputs] == [event.inputs[n].dataset for n in places]
        assert all(edge.input < len(part.inputs) or places[-1] == last for edge in part.columns)
    if estimated_size(event) > 2 * limit:
        assert max(len(part.inputs) for part in parts) < len(event.inputs)
    random.shuffle(parts)
    assert _by_input(merge_parts(parts)) == _by_input(event)


@given(events(Committed), st.integers(100, 1_000))
def test_each_part_of_a_commit_points_at_inputs_of_its_own(event: Event, limit: int) -> None:
    commit = cast("Committed", whole(event))
    edges = {(o, commit.inputs[i]) for o, output in enumerate(commit.outputs) for i in output.made_from or ()}
    found = {
        (o, part.inputs[i])
        for part in split_event(commit, limit)
        for o, output in enumerate(part.outputs)
        for i in output.made_from or ()
    }
    assert found == edges


@given(st.lists(st.integers(1, 200), min_size=60, max_size=300), st.integers(1_500, 6_000))
def test_parts_are_as_large_as_they_may_be_and_no_larger(lengths: list[int], limit: int) -> None:
    inputs = tuple(Input(dataset=DatasetId(namespace="file", name="x" * length)) for length in lengths)
    commit = Committed(barrier=1, inputs=inputs, producer=uuid7())
    sizes = [len(Codec().encode(part)) for part in split_event(commit, limit)]
    assert max(sizes) <= limit
    assert len(sizes) <= 1 + 2 * sum(sizes) // limit


@given(events(), st.integers(100, 1_000), st.data())
def test_a_missing_or_doubled_part_is_reported(event: Event, limit: int, data: st.DataObject) -> None:
    parts = sequenced(split_event(whole(event), limit))
    if len(parts) == 1:
        return
    victim = data.draw(st.integers(0, len(parts) - 1))
    with pytest.raises(PartsError):
        merge_parts(parts[:victim] + parts[victim + 1 :])
    with pytest.raises(PartsError):
        merge_parts([*parts, parts[victim]])


def test_encoded_parts_stay_under_the_limit() -> None:
    inputs = tuple(
        Input(dataset=DatasetId(namespace="s3://bucket", name=f"warehouse/table_{n}" + "x" * (n % 90)))
        for n in range(9_000)
    )
    commit = Committed(
        barrier=1,
        fingerprint=bytes(16),
        inputs=inputs,
        outputs=(Output(dataset=DatasetId(namespace="s3://b", name="o"), made_from=tuple(range(0, 9_000, 7))),),
        producer=uuid7(),
        sequence=1,
    )
    parts = split_event(commit)
    assert len(parts) > 1
    assert max(len(Codec().encode(part)) for part in parts) <= 256 * 1024


def test_a_type_of_hundreds_of_kilobytes_is_cut_into_pieces_and_comes_back() -> None:
    huge = '{"type":"struct","fields":[' + ",".join(f'"field_{n}"' for n in range(80_000)) + "]}"
    table = Table(
        columns=(Column(name="a", type='"long"'), Column(name="big", type=huge), Column(name="z", type='"int"'))
    )
    context = CatalogContext(name="lake", class_name="C")
    created = CreateTable(
        context=context, identifier=TableName(catalog="lake", database="d", table="t"), table=table, producer=uuid7()
    )
    parts = sequenced(split_event(created))
    assert max(len(Codec().encode(part)) for part in parts) <= 256 * 1024
    assert merge_parts(parts) == created


def test_free_texts_lose_their_end_and_say_so_but_facts_do_not() -> None:
    failed = StatementFailed(error=ErrorDetails(type="E", message="m" * 400_000), producer=uuid7())
    (cut_down,) = split_event(failed)
    assert cut_down.error.message.endswith("… [395904 more characters]")
    version = "v" * 300_000
    read = Committed(barrier=1, fingerprint=bytes(16), inputs=(Input(dataset=None, version=version),), outputs=())
    assert split_event(read)[0].inputs[0].version == version


@pytest.mark.parametrize("place", [-1, 2**31, 2**63 - 1])
def test_a_part_is_at_a_place_to_which_others_can_be_added(place: int) -> None:
    """A mutated event had one of 63 bits: its edges' places no database took."""
    with pytest.raises(ValidationError, match="first_input"):
        JobLineage(fingerprint=bytes(16), outputs=(), first_input=place)
