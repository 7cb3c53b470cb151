"""What a driver is told of tables that a statement reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Connection, event

from headwater.errors import ConfigurationError
from headwater.lens.consistent import KEY
from headwater.lineage.store import open_store
from headwater.versions.finder import STORE, LineageFinderFactory, find_versions, store_of
from tests.kit.lineage.scripted_producer import store
from tests.kit.versions.two_jobs import ALL, two_jobs

B, C = "lake.db.b", "lake.db.c"


@pytest.fixture
def connection(connection: Connection) -> Connection:
    store(connection, two_jobs())
    return connection


def test_tables_are_pinned_by_the_names_that_were_given(connection: Connection) -> None:
    found = find_versions(connection, [C, B])
    assert [(each.name, each.version, each.steps_behind) for each in found.pins] == [(C, "15", 0), (B, "11", 1)]
    assert found.cut == ("lake.db.a@20",)
    assert found.reasons == ()
    assert all(each.made_at for each in found.pins)


def test_how_complete_the_store_is_isnt_asked(connection: Connection) -> None:
    """Four statements that no statement of a driver has to wait for."""
    executed: list[str] = []
    event.listen(connection, "before_cursor_execute", lambda *given: executed.append(given[2]))
    find_versions(connection, [C, B])
    assert executed
    assert not any("FROM arrivals" in each or "FROM producers" in each for each in executed)


def test_a_table_that_nobody_knows_is_named_and_the_others_are_aligned(connection: Connection) -> None:
    """It finds one that takes the others with it."""
    found = find_versions(connection, [B, "lake.db.nobody", C])
    assert [each.version for each in found.pins] == ["11", "15"]
    assert len(found.reasons) == 1
    assert found.reasons[0].startswith("lake.db.nobody: the store knows no table")
    alone = find_versions(connection, [B, "lake.db.nobody"])
    assert alone.pins == ()
    assert len(alone.reasons) == 1


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (f"{C}.snapshots", f"it is a metadata table of {C}, which can't be pinned: SET {KEY}.allowed = {C}.snapshots"),
        (f"{C}$files", f"it is a metadata table of {C}, which can't be pinned: SET {KEY}.allowed = {C}$files reads"),
        (f"{C}.branch_x", f"the store knows no branch 'x' of {C}"),
        (f"{C}.tag_eod", f"it is the tag eod of {C}: write {C} VERSION AS OF"),
        ("lake.db.nobody.snapshots", "the store knows no table 'lake.db.nobody.snapshots'"),
    ],
)
def test_a_part_of_a_table_is_told_from_a_table_that_nobody_knows(
    connection: Connection, name: str, reason: str
) -> None:
    """It finds one who is asked whether the table itself was meant."""
    found = find_versions(connection, [B, name])
    assert found.pins == ()
    assert found.reasons[0].startswith(f"{name}: {reason}")


def test_a_table_with_two_names_has_one_version(connection: Connection) -> None:
    found = find_versions(connection, [B, "db.b", C])
    assert {each.name: each.version for each in found.pins} == {B: "11", "db.b": "11", C: "15"}


def test_no_versions_that_belong_together_is_a_reason(connection: Connection) -> None:
    story = two_jobs()
    story.commit("d@1", reads=["a@22"], job="Job-D")
    store(connection, story)
    found = find_versions(connection, [C, "lake.db.d"])
    assert found.pins == ()
    assert "belong together" in found.reasons[0]


def test_a_table_isnt_read_at_a_version_from_before_it_had_anything(connection: Connection) -> None:
    """It finds tables that were empty, as those of Delta are at first: they go with each other."""
    story = two_jobs()
    story.commit("e@1", job="Job-E")
    story.commit("e@2", reads=["a@20"], job="Job-E")
    story.commit("f@1", job="Job-F")
    story.commit("f@2", reads=["a@21"], replaced=ALL, job="Job-F")
    store(connection, story)
    found = find_versions(connection, ["lake.db.e", "lake.db.f"])
    assert found.pins == ()
    assert "lake.db.e@2 contains lake.db.a@20" in found.reasons[0]


def test_where_the_store_is(tmp_path: Path) -> None:
    """The key, then the listener's, then the environment."""
    listener = {"spark.headwater.jdbc.url": f"jdbc:sqlite:{tmp_path / 'listener.db'}"}
    own = {STORE: f"sqlite:///{tmp_path / 'own.db'}"}
    environment = {"HEADWATER_STORE": f"sqlite:///{tmp_path / 'environment.db'}"}

    def words(configuration: dict[str, str], environment: dict[str, str]) -> str:
        return store_of(configuration, environment).target.words

    assert "own.db" in words({**listener, **own}, environment)
    assert "listener.db" in words(listener, environment)
    assert "environment.db" in words({}, environment)
    with pytest.raises(ConfigurationError, match=STORE):
        store_of({}, {})


def test_a_store_that_was_away_is_asked_again(tmp_path: Path) -> None:
    finder = LineageFinderFactory().create({STORE: str(tmp_path / "store.db")})
    try:
        with pytest.raises(Exception, match=r"store\.db"):
            finder.find([B, C])
        with open_store(str(tmp_path / "store.db"), create=True) as opened, opened.engine.begin() as connection:
            store(connection, two_jobs())
        assert [each.version for each in finder.find([B, C]).pins] == ["11", "15"]
    finally:
        finder.close()
