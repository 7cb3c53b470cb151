"""A fingerprint stands for the shape of a write: runs of one program have one, other programs have others."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.events.base import Texts
from headwater.events.fingerprints import fingerprint_of, without_staging
from headwater.events.jobs import ShapedSink, ShapedSource
from headwater.events.lineage import ColumnLineage, Derivation
from headwater.events.names import DatasetId, TableName
from headwater.events.tables import Column, Transform, Watermark

NUMBERS = st.integers(0, 10**9)
WORDS = st.text(st.sampled_from("abcdefgh '%_"), max_size=12)


def source(name: str = "orders", **more: object) -> ShapedSource:
    columns = (Column(name="id", type='"long"'), Column(name="amount", type='"decimal(10,2)"'))
    place = DatasetId(namespace="s3://lake", name=f"warehouse/{name}")
    return ShapedSource.model_validate({"dataset": place, "columns": columns, **more})


def sink(name: str = "warehouse/daily", **more: object) -> ShapedSink:
    return ShapedSink.model_validate({"dataset": DatasetId(namespace="s3://lake", name=name), **more})


def edge(expression: str, source_at: int = 0) -> ColumnLineage:
    return ColumnLineage(
        output=0,
        input=source_at,
        source=("amount",),
        target=("total",),
        derivation=Derivation.AGGREGATION,
        expression=expression,
    )


def of_expression(text: str) -> bytes:
    return fingerprint_of([source()], [sink()], [edge(text)])


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@given(NUMBERS, NUMBERS, WORDS, WORDS)
def test_literals_are_no_part_of_it(number: int, other: int, word: str, another: str) -> None:
    text = "sum(CASE WHEN `day` = {} AND `n` > {} THEN amount ELSE {} END)"
    assert of_expression(text.format(quoted(word), number, number)) == of_expression(
        text.format(quoted(another), other, other)
    )


@given(NUMBERS, NUMBERS)
def test_expression_ids_are_no_part_of_it(one: int, other: int) -> None:
    text = "sum((amount#{0}L * rate#{1}))"
    assert of_expression(text.format(one, other)) == of_expression(text.format(other, one))


@given(
    NUMBERS,
    NUMBERS,
    st.sampled_from(["snapshot-id", "versionAsOf", "scan.snapshot-id", "as-of-timestamp", "startingVersion"]),
)
def test_snapshots_that_are_asked_for_are_no_part_of_it(one: int, other: int, option: str) -> None:
    def reading(snapshot: int) -> bytes:
        return fingerprint_of(
            [source(options=Texts({option: str(snapshot), "merge": "x"}), tag=f"t{snapshot}")], [sink()]
        )

    assert reading(one) == reading(other)


@given(st.uuids(), st.integers(0, 99))
def test_staging_directories_are_no_part_of_it(uuid: object, number: int) -> None:
    final = fingerprint_of([source()], [sink("warehouse/daily")])
    for staging in (
        f".spark-staging-{uuid}/day=1",
        f"_temporary/{number}/task_{uuid}",
        f".hive-staging_hive_{number}/-ext-10000",
    ):
        assert fingerprint_of([source()], [sink(f"warehouse/daily/{staging}")]) == final


@given(st.permutations(["a", "b", "c", "d"]), st.randoms())
def test_the_order_of_inputs_and_edges_does_not_matter(names: list[str], random: Random) -> None:
    def written(order: list[str]) -> bytes:
        inputs = [source(name) for name in order]
        edges = [edge(f"max({name})", order.index(name)) for name in order]
        random.shuffle(edges)
        return fingerprint_of(inputs, [sink()], edges)

    assert written(names) == written(sorted(names))


BASE = fingerprint_of([source()], [sink()], [edge("sum(amount)")])


@pytest.mark.parametrize(
    "other",
    [
        fingerprint_of([source("other")], [sink()], [edge("sum(amount)")]),
        fingerprint_of([source()], [sink("warehouse/other")], [edge("sum(amount)")]),
        fingerprint_of([source()], [sink()], [edge("max(amount)")]),
        fingerprint_of([source()], [sink()], []),
        fingerprint_of([source(branch="audit", main=False)], [sink()], [edge("sum(amount)")]),
        fingerprint_of(
            [source(table=TableName(catalog="c", database="d", table="t"))], [sink()], [edge("sum(amount)")]
        ),
        fingerprint_of([source(options=Texts({"mergeSchema": "true"}))], [sink()], [edge("sum(amount)")]),
        fingerprint_of([source(columns=(Column(name="id", type='"int"'),))], [sink()], [edge("sum(amount)")]),
        fingerprint_of([source()], [sink(partitioning=(Transform(columns=(("day",),)),))], [edge("sum(amount)")]),
        fingerprint_of(
            [source(watermarks=(Watermark(column=("ts",), delay="1 hour"),))], [sink()], [edge("sum(amount)")]
        ),
        fingerprint_of([source(), source("second")], [sink()], [edge("sum(amount)")]),
        fingerprint_of([ShapedSource(dataset=None, opaque="an RDD")], [sink()], [edge("sum(amount)")]),
    ],
)
def test_another_shape_has_another_fingerprint(other: bytes) -> None:
    assert other != BASE


def test_it_is_the_same_in_every_version() -> None:
    """Stored fingerprints join with new ones: who changes this value breaks stored lineage."""
    assert BASE.hex() == "839ecf31eee4fedc966a58ef2473354e"


@pytest.mark.parametrize(
    "path", ["warehouse/daily", "warehouse/my_temporary/x", "warehouse/day=1/part-0", "a/.spark/x"]
)
def test_other_paths_stay(path: str) -> None:
    assert without_staging(path) == path
