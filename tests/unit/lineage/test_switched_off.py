"""What the first declaration of a catalog switches off isn't shown, whatever later drivers report of that catalog.

No other test sees a snapshot that a driver reported against the declaration which holds: each question, the PIP-5
tables in memory and in a database, and the verdicts on versions are asked.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection

from headwater.errors import ConfigurationError
from headwater.events import CatalogId, CatalogOptionsDeclared, LineageDeleted
from headwater.events.administration import LineageScope
from headwater.events.catalog import CatalogContext
from headwater.events.jobs import OverwriteScope
from headwater.events.names import JobName
from headwater.lineage.maintenance.purge import purge
from headwater.lineage.mapping import map_event
from headwater.lineage.mapping.commits import SINK, SOURCE
from headwater.lineage.meta import MemoryLineageMeta
from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.checkpoints import checkpoints
from headwater.lineage.questions.lateness import lateness
from headwater.lineage.questions.snapshots import downstream_snapshots, upstream_snapshots
from headwater.lineage.questions.states import upstream_state
from headwater.lineage.questions.tables import downstream_tables
from headwater.lineage.sql.pip5_rows import data_rows, table_rows
from headwater.versions import align, check, contained
from tests.kit.lineage.scripted_producer import at, dataset, store
from tests.kit.lineage.stories import StoryProducer
from tests.kit.stores import memory_connection

LAKE = CatalogId(type="iceberg", location="s3://lake/w")


@pytest.fixture
def connection() -> Iterator[Connection]:
    with memory_connection() as connection:
        yield connection


def declare(
    number: int,
    minute: float,
    *,
    data: bool = True,
    table: bool = True,
    name: str = "lake",
    place: CatalogId | None = LAKE,
) -> StoryProducer:
    story = StoryProducer(number)
    context = CatalogContext(name=name, class_name="org.example.Catalog", id=place)
    story.emit(minute, CatalogOptionsDeclared, context=context, data_lineage=data, table_lineage=table)
    story.minute = minute
    return story


def reported(number: int, minute: float) -> StoryProducer:
    """`b` and `c` are made from `a`."""
    story = declare(number, minute)
    story.commit("a@1")
    story.commit("b@1", reads=["a@1"])
    story.commit("c@1", reads=["a@1"])
    return story


@pytest.mark.parametrize("place", [LAKE, None])
def test_no_question_shows_a_version(connection: Connection, place: CatalogId | None) -> None:
    """The driver whose options say otherwise is stored first, and has begun later."""
    later = declare(2, 5, place=place)
    later.commit("a@1")
    later.commit("b@1", reads=["a@1"])
    store(connection, later, declare(1, 1, data=False, place=place))
    for answer in (
        upstream_snapshots(connection, "lake.db.b", 1),
        downstream_snapshots(connection, "lake.db.a", 1),
        upstream_state(connection, "lake.db.b", 1),
    ):
        assert answer.rows == ()
        whys = {(each.why, each.about) for each in answer.limits}
        assert (LimitReason.OMITTED, "catalog lake") in whys
        assert not any(each.why is LimitReason.DELETED for each in answer.limits)
    assert checkpoints(connection, "lake.db.b@1").rows == ()
    assert {each.snapshot for each in lateness(connection, "lake.db.b").rows} == {None}
    assert connection.execute(data_rows(SINK)).all() == connection.execute(data_rows(SOURCE)).all() == []
    assert [row.table for row in connection.execute(table_rows(SINK)).all()] == ["a", "b"]
    assert [each.target.label for each in downstream_tables(connection, "lake.db.a")] == ["lake.db.b"]


def test_tables_are_switched_off_with_their_versions(connection: Connection) -> None:
    store(connection, reported(2, 5), declare(1, 1, table=False))
    assert connection.execute(table_rows(SINK)).all() == connection.execute(data_rows(SINK)).all() == []
    answer = downstream_tables(connection, "lake.db.a")
    assert answer.rows == ()
    assert (LimitReason.OMITTED, "2 edges") in {(each.why, each.about) for each in answer.limits}


def test_a_later_declaration_hides_nothing(connection: Connection) -> None:
    store(connection, declare(2, 30, data=False), reported(1, 1))
    answer = upstream_snapshots(connection, "lake.db.b", 1)
    assert [each.source.label for each in answer.rows] == ["lake.db.a@1"]
    (limit,) = (each for each in answer.limits if each.why is LimitReason.OMITTED)
    assert limit.detail == "its option data-lineage is false for some driver, and true was declared first"
    assert len(connection.execute(data_rows(SINK)).all()) == 3


def test_another_name_of_the_catalog_is_that_catalog(connection: Connection) -> None:
    """A driver can call the catalog otherwise: what it points at decides."""
    story = reported(2, 5)
    store(connection, story, declare(1, 1, data=False, name="lakehouse"))
    assert connection.execute(data_rows(SINK)).all() == []


def test_a_catalog_that_keeps_its_versions_is_shown(connection: Connection) -> None:
    elsewhere = CatalogId(type="iceberg", location="s3://elsewhere")
    store(connection, reported(2, 5), declare(1, 1, data=False, name="other", place=elsewhere))
    assert len(connection.execute(data_rows(SINK)).all()) == 3
    assert not upstream_snapshots(connection, "lake.db.b", 1).limits


def test_versions_are_in_doubt_and_never_equal(connection: Connection) -> None:
    store(connection, reported(2, 5))
    assert check(connection, ["lake.db.b@1", "lake.db.c@1"]).is_consistent is True
    store(connection, declare(1, 1, data=False))
    verdict = check(connection, ["lake.db.b@1", "lake.db.c@1"])
    assert verdict.is_consistent is None
    assert LimitReason.OMITTED in {each.why for each in verdict.limits}


@pytest.mark.parametrize("how", ["switch", "deletion"])
def test_a_version_that_was_only_read_isnt_known(connection: Connection, how: str) -> None:
    """Nobody reported who writes `s`. Fails if the versions count that hidden reads name."""
    story = declare(2, 5)
    for number in (1, 2):
        story.commit(f"b@{number}", reads=[f"s@{number}"], replaced=OverwriteScope.ALL)
    store(connection, story)
    assert contained(connection, "lake.db.s@2").of.snapshot == 2
    assert [each.table.snapshot for each in align(connection, ["lake.db.s", "lake.db.b"])] == [2, 2]
    hiding = declare(1, 1, data=False) if how == "switch" else StoryProducer(1)
    if how == "deletion":
        hiding.emit(20, LineageDeleted, scope=LineageScope.DATA, dataset=dataset("s"), before=at(20))
    store(connection, hiding)
    for ask in (lambda: contained(connection, "lake.db.s@2"), lambda: align(connection, ["lake.db.s", "lake.db.b"])):
        with pytest.raises(ConfigurationError, match=r"lake\.db\.s"):
            ask()


def test_memory_has_the_same_rows(connection: Connection) -> None:
    meta = MemoryLineageMeta()
    for story in (reported(2, 5), declare(1, 1, data=False)):
        for event in story.events:
            meta._merge(map_event(event))  # pyright: ignore[reportPrivateUsage]
    assert list(meta.source_data_lineages()) == list(meta.sink_data_lineages()) == []
    assert {each.table for each in meta.sink_table_lineages()} == {"a", "b", "c"}


def test_a_purge_erases_nothing_of_it(connection: Connection) -> None:
    """An earlier declaration can still arrive and say true."""
    deleted = LineageDeleted(scope=LineageScope.ALL, of_job=JobName(name="another"), before=at(90))
    store(connection, reported(2, 5), declare(1, 1, data=False), [deleted])
    connection.commit()
    assert connection.execute(data_rows(SINK)).all() == []
    assert purge(connection.engine).commits == 0
    store(connection, declare(3, 0, data=True))
    assert len(connection.execute(data_rows(SINK)).all()) == 3
