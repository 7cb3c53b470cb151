"""Behind which tables nothing has to be loaded: what all share, unless it is contained in another way, too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine, create_engine, event

from headwater.events.administration import DatasetsUnified
from headwater.events.jobs import OverwriteScope
from headwater.lineage.mapping.keys import dataset_hash
from headwater.lineage.questions.traversal.identities import Identities
from headwater.lineage.rows import tables as t
from headwater.lineage.sql import METADATA
from headwater.lineage.sql.tables import table_of
from headwater.versions import align, check
from headwater.versions.shared_tables import SharedTables
from tests.kit.lineage.scripted_producer import dataset, store
from tests.kit.lineage.stories import StoryProducer

ALL = OverwriteScope.ALL


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = create_engine("sqlite://")
    METADATA.create_all(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    with engine.connect() as connection:
        yield connection


def left_out(connection: Connection, *names: str) -> set[str]:
    keys = {key(each): each for each in "abcdefgh"}
    return {keys[each] for each in shared(connection, *names)}


def shared(connection: Connection, *names: str) -> frozenset[bytes]:
    return SharedTables(connection, Identities(connection), [key(each) for each in names]).nearest()


def key(name: str) -> bytes:
    found = dataset_hash(dataset(name))
    assert found is not None
    return found


def test_the_nearest_tables_that_all_share(connection: Connection) -> None:
    story = StoryProducer()
    for target, sources in (("b", "a"), ("c", "b"), ("d", "c"), ("e", "c")):
        story.commit(f"{target}@1", reads=[f"{each}@1" for each in sources], replaced=ALL)
    store(connection, story)
    assert left_out(connection, "d", "e") == {"c"}
    assert left_out(connection, "c", "e") == {"c"}
    assert left_out(connection, "d", "a") == {"a"}


def test_a_table_that_only_some_share_is_needed(connection: Connection) -> None:
    story = StoryProducer()
    for target, sources in (("b", "a"), ("c", "b"), ("d", "b"), ("e", "a")):
        story.commit(f"{target}@1", reads=[f"{each}@1" for each in sources], replaced=ALL)
    store(connection, story)
    assert left_out(connection, "c", "d") == {"b"}
    assert left_out(connection, "c", "d", "e") == {"a"}


def test_what_is_contained_in_another_way_too_is_needed_on_both(connection: Connection) -> None:
    story = StoryProducer()
    for target, sources in (("b", "a"), ("c", "ba"), ("d", "ba")):
        story.commit(f"{target}@1", reads=[f"{each}@1" for each in sources], replaced=ALL)
    store(connection, story)
    assert left_out(connection, "c", "d") == {"a"}


def test_tables_that_feed_each_other(connection: Connection) -> None:
    story = StoryProducer()
    for target, sources in (("a", "b"), ("b", "a"), ("c", "a"), ("d", "a")):
        story.commit(f"{target}@1", reads=[f"{each}@1" for each in sources], replaced=ALL)
    store(connection, story)
    assert left_out(connection, "c", "d") == set()
    story.commit("b@2", reads=["b@1"])  # what reads itself has nothing of others by that
    store(connection, story)
    assert left_out(connection, "c", "d") == set()


@pytest.mark.parametrize("how_many", [3, 300])
def test_what_many_were_put_into_is_asked_from_the_other_end(connection: Connection, how_many: int) -> None:
    """`c` was made from hundreds of tables, one of which is read beside it: what reads that one is soon known."""
    story = StoryProducer()
    sources = [f"x{number}" for number in range(how_many)]
    for target, read in (("c", ["b", *sources]), ("d", ["c", "b"]), ("e", ["c", "b"]), ("f", ["c"]), ("g", ["c"])):
        story.commit(f"{target}@1", reads=[f"{each}@1" for each in read], replaced=ALL)
    store(connection, story)
    assert key("c") not in shared(connection, "d", "e")
    assert key("c") not in shared(connection, "d", "f")
    assert shared(connection, "f", "g") == {key("c")}


def test_a_table_that_was_linked_with_another_one_is_needed(connection: Connection) -> None:
    story = StoryProducer()
    for target, sources in (("c", "b"), ("d", "b"), ("b", "a")):
        story.commit(f"{target}@1", reads=[f"{each}@1" for each in sources], replaced=ALL)
    story.emit(9, DatasetsUnified, dataset=dataset("b"), others=(dataset("e"),))
    store(connection, story)
    assert left_out(connection, "c", "d") == {"a"}


def test_a_version_that_lacks_a_shared_table_is_compared_with_all_that_it_has(connection: Connection) -> None:
    """The job of `c` read `z` alone at first. To that version `d` has to be compared with what is behind `b`, too."""
    story = StoryProducer()
    story.commit("z@1")
    story.commit("a@1")
    story.commit("b@1", reads=["a@1"], replaced=ALL, opaque="an RDD")
    story.commit("c@1", reads=["z@1"], replaced=ALL)
    story.commit("d@1", reads=["b@1"], replaced=ALL)
    story.commit("c@2", reads=["b@1"], replaced=ALL)
    store(connection, story)
    assert left_out(connection, "c", "d") == {"b"}
    assert check(connection, ["c@1", "d"]).is_consistent is None
    assert check(connection, ["c@2", "d"]).is_consistent is True
    assert sorted(each.table.label for each in align(connection, ["c", "d"]).rows) == ["lake.db.c@2", "lake.db.d@1"]


def test_reads_without_edges_between_tables_are_seen(connection: Connection) -> None:
    """A store that somebody else fills may lack them: then nothing is left out."""
    story = StoryProducer()
    story.commit("z@1")
    story.commit("a@1", reads=["z@1"])
    story.commit("b@1", reads=["a@1"], replaced=ALL)
    story.commit("c@1", reads=["a@1", "z@1"], replaced=ALL)
    story.commit("z@2")
    story.commit("d@1", reads=["a@1", "z@2"], replaced=ALL)
    store(connection, story)
    row = table_of(t.TABLE_EDGE)
    connection.execute(row.delete().where(row.c.source == key("z")))
    assert check(connection, ["b", "c"]).is_consistent is True
    assert check(connection, ["b", "d"]).is_consistent is False


@pytest.mark.parametrize("how_many", [3, 300])
def test_what_is_behind_shared_tables_costs_nothing(engine: Engine, how_many: int) -> None:
    """As many statements, and as many rows, however long the histories are behind the table that all share."""
    story = StoryProducer()
    for number in range(1, how_many + 1):
        story.commit(f"a@{number}")
        story.commit(f"b@{number}", reads=[f"a@{number}"])
        story.commit(f"c@{number}", reads=[f"b@{number}"])
    for name in "def":
        story.commit(f"{name}@1", reads=[f"c@{how_many}"], replaced=ALL)
    fetched, statements = list[None](), [0]

    @event.listens_for(engine, "before_cursor_execute")
    def keep(*_: object) -> None:
        statements[0] += 1

    with engine.connect() as connection:
        store(connection, story)
        statements[0] = 0
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.set_progress_handler(lambda: fetched.append(None), 100)
        answer = align(connection, ["d", "e", "f"])
        driver.set_progress_handler(None, 0)
    assert [each.label for each in answer.cut] == [f"lake.db.c@{how_many}"]
    assert statements[0] <= 60
    assert len(fetched) <= 400
