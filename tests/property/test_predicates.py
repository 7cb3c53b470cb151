"""A predicate means the same in memory and in a database."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import BigInteger, Column, MetaData, Table, Text, create_engine, insert, select

from headwater.errors import ConfigurationError
from headwater.events.clock import micros_of
from headwater.lineage.api import DataLineage, TableLineage
from headwater.lineage.predicates import Predicate, where
from headwater.lineage.sql.entity_queries import PredicateCompiler
from tests.kit.effort import examples

pytestmark = pytest.mark.slow

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
TEXTS = st.sampled_from(["", "a", "A", "ab", "a%", "a_", "[a]", "a*", "ä", "a\nb", "\\", "!"])
LONGS = st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1])
TIMES = st.sampled_from([NOON, NOON + timedelta(microseconds=1)])
PATTERNS = st.lists(
    st.sampled_from(["a", "A", "%", "_", "\\%", "\\_", "\\\\", "[", "*", "?", "!", "b", "\n"]), max_size=4
)


def rows() -> st.SearchStrategy[DataLineage]:
    return st.builds(
        DataLineage,
        job=TEXTS.filter(len),
        catalog=st.none() | TEXTS,
        database=TEXTS,
        table=TEXTS.filter(len),
        create_time=st.none() | TIMES,
        barrier_id=LONGS,
        snapshot_id=LONGS,
    )


def compared(field: Any, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Predicate]:
    return st.one_of(
        values.map(lambda value: field == value),
        values.map(lambda value: field != value),
        values.map(lambda value: field < value),
        values.map(lambda value: field <= value),
        values.map(lambda value: field > value),
        values.map(lambda value: field >= value),
        st.lists(values, max_size=3).map(field.in_),
        st.just(field.is_null()),
    )


PREDICATES: st.SearchStrategy[Predicate] = st.recursive(
    st.one_of(
        compared(where.job, TEXTS),
        compared(where.database, TEXTS),
        compared(where.catalog, TEXTS),
        compared(where.create_time, TIMES),
        compared(where.barrier_id, LONGS),
        PATTERNS.map(lambda parts: where.table.like("".join(parts))),
        PATTERNS.map(lambda parts: where.database.like("".join(parts))),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: two[0] & two[1]),
        st.tuples(inner, inner).map(lambda two: two[0] | two[1]),
        inner.map(lambda one: ~one),
    ),
    max_leaves=5,
)
ENGINE = create_engine("sqlite://")
ENTITIES = Table(
    "entities",
    MetaData(),
    *(Column(name, Text()) for name in ("job", "catalog", "database", "table")),
    *(Column(name, BigInteger()) for name in ("create_time", "barrier_id", "snapshot_id")),
)
ENTITIES.metadata.create_all(ENGINE)


@given(st.lists(rows(), max_size=5), PREDICATES)
@settings(max_examples=examples(300), deadline=None)
def test_a_database_gives_what_memory_gives(entities: list[DataLineage], predicate: Predicate) -> None:
    numbered = list(enumerate(entities))
    with ENGINE.connect() as connection:
        for number, each in numbered:
            values = each.model_dump() | {"snapshot_id": number}
            values["create_time"] = None if each.create_time is None else micros_of(each.create_time)
            connection.execute(insert(ENTITIES).values(values))
        condition = PredicateCompiler("sqlite", dict(ENTITIES.c)).of(predicate)
        found = set(connection.scalars(select(ENTITIES.c.snapshot_id).where(condition)))
        connection.rollback()
    assert found == {number for number, each in numbered if predicate.holds(each) is True}


def test_a_predicate_is_no_truth() -> None:
    with pytest.raises(TypeError, match="join them with &"):
        assert where.job == "a"


def test_what_an_entity_does_not_have_cannot_be_asked_for() -> None:
    columns = {"job": ENTITIES.c.job}
    with pytest.raises(ConfigurationError, match="there is no barrier_id here to ask for: there is job"):
        PredicateCompiler("sqlite", columns).of(where.barrier_id == 1)


def test_entities_are_values() -> None:
    one = TableLineage(job="a", database="b", table="c", create_time=NOON)
    assert one == one.model_copy()
    assert hash(one) == hash(one.model_copy())
    with pytest.raises(ValueError, match="frozen"):
        one.job = "z"  # type: ignore[misc]
