"""A store that is rebuilt from its log: the rebuilt one has the rows of the law, and takes the live one's place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL, inspect, text

from headwater.consumers.replay.preparation import CopiedStore, EventsWouldBeLost
from headwater.errors import ConfigurationError
from headwater.events.avro import Codec
from headwater.journal import LocalLog
from headwater.lineage.bulk import WriteBatch
from headwater.lineage.mapping import map_event
from headwater.lineage.replacement.areas import Area, area_name, drop_area, has_area
from headwater.lineage.replacement.switching import switch_over_for
from headwater.lineage.rows import RowSet
from headwater.lineage.store import Store, StoreOptions, open_store
from headwater.testing.examples import EXAMPLES
from tests.kit.events.written import digest_in
from tests.kit.stores import database_on
from tests.kit.waiting import until
from tests.kit.writers.set_back import append, compared, law, plain, replayed, running, stored, write_all

pytestmark = [pytest.mark.slow]


@pytest.fixture(
    params=[
        "sqlite",
        *(pytest.param(name, marks=[pytest.mark.database, pytest.mark.long]) for name in ("postgres", "mariadb")),
    ]
)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[URL]:
    with database_on(request.param, request, tmp_path) as url:
        options = StoreOptions.at(url.render_as_string(hide_password=False))
        yield url
        for area in Area:
            drop_area(options, area)


@pytest.fixture
def options(url: URL) -> StoreOptions:
    return StoreOptions.at(url.render_as_string(hide_password=False))


@pytest.fixture
def store(options: StoreOptions) -> Iterator[Store]:
    with open_store(options) as opened:
        yield opened


@pytest.fixture
def log(tmp_path: Path) -> LocalLog:
    return LocalLog.open(tmp_path / "log")


class TestSwitch:
    def test_a_rebuilt_store_takes_the_place_of_one_that_has_the_same_rows(
        self, log: LocalLog, options: StoreOptions, store: Store
    ) -> None:
        append(log, 0, 200)
        write_all(log, store)
        before = view_names(store)
        result = replayed(log, options)
        assert result.is_switched
        assert result.events == 200
        found = compared(options, Area.FORMER)
        assert (found.differing, found.explained, found.unread) == (0, 0, (0, 0))
        assert all(each.digests[0] == each.digests[1] for each in found.tables)
        with open_store(options) as after, open_store(options.beside(Area.FORMER.value), views=False) as former:
            assert digest_in(after) == digest_in(former) == law(log)
            assert before == view_names(after)
            assert len(before) >= 6
        assert not has_area(options, Area.FRESH)

    def test_rows_that_are_wrong_in_the_live_store_are_named_and_gone_after_the_switch(
        self, log: LocalLog, options: StoreOptions, store: Store
    ) -> None:
        append(log, 0, 100)
        write_all(log, store)
        with store.engine.begin() as connection:
            connection.execute(text("DELETE FROM writes WHERE snapshot = 7"))
            connection.execute(text("UPDATE runs SET job = 'nobody'"))
            wrong = text("INSERT INTO datasets (id, namespace, name) VALUES (:id, 'n', 'n')")
            connection.execute(wrong, {"id": b"x" * 16})
        assert not replayed(log, options, switches=False).is_switched
        found = {(each.kind.name, each.side) for each in compared(options, Area.FRESH).differences}
        assert {("writes", "only in the other"), ("datasets", "only here")} <= found
        assert digest_in(store) != law(log, "wrong")
        assert replayed(log, options).is_switched
        with open_store(options) as after:
            assert digest_in(after) == law(log)

    def test_a_writer_goes_on_in_the_rebuilt_store(self, log: LocalLog, options: StoreOptions, store: Store) -> None:
        """It notices by the marks of its connections, and reads on from the offsets of the rebuilt tables."""
        writer = plain(log, store)
        append(log, 0, 100)
        with running(writer):
            until(lambda: stored(store) == 100)
            append(log, 100, 200)
            assert replayed(log, options).is_switched
            append(log, 200, 300)
            until(lambda: stored(store) == 300)
        assert digest_in(store) == law(log)
        assert writer.metrics.set_backs == 1

    def test_what_only_the_live_store_has_is_not_lost(self, log: LocalLog, options: StoreOptions, store: Store) -> None:
        append(log, 0, 50)
        write_all(log, store)
        store.bulk.merge(WriteBatch(rows=list(map_event(EXAMPLES[0]))))
        with pytest.raises(EventsWouldBeLost, match=f"1 of producer {EXAMPLES[0].producer}"):
            replayed(log, options)
        assert stored(store) == 50
        assert replayed(log, options, accept_loss=True).is_switched

    def test_a_second_replay_needs_the_former_tables_gone(
        self, log: LocalLog, options: StoreOptions, store: Store
    ) -> None:
        append(log, 0, 30)
        write_all(log, store)
        assert replayed(log, options).is_switched
        with pytest.raises(ConfigurationError, match="--drop-former"):
            replayed(log, options)
        assert drop_area(options, Area.FORMER)
        assert replayed(log, options).is_switched


def test_a_copy_of_the_old_file_that_was_not_finished_is_no_switch_over(log: LocalLog, tmp_path: Path) -> None:
    """It finds a replay that takes what a kill left of that copy for replaced tables, and throws the rebuilt ones away:
    it happened in a file that was replaced before."""
    options = StoreOptions.at(str(tmp_path / "store.db"))
    append(log, 0, 30)
    assert replayed(log, options).is_switched
    assert not replayed(log, options, switches=False).is_switched
    former = Path(area_name(options.beside(Area.FORMER.value).target))
    former.touch()
    switch_over_for(options).recover()
    assert [has_area(options, each) for each in Area] == [True, False]
    assert replayed(log, options).is_switched
    assert compared(options, Area.FORMER).differing == 0


class TestComparison:
    def test_events_that_only_one_store_has_read_are_no_differences(
        self, log: LocalLog, options: StoreOptions, store: Store
    ) -> None:
        """It finds a comparison that is of no use while a writer goes on, and one that takes a wrong row for a late
        one."""
        append(log, 0, 100)
        write_all(log, store)
        assert not replayed(log, options, switches=False).is_switched
        append(log, 100, 200)
        write_all(log, store)
        found = compared(options, Area.FRESH)
        assert (found.differing, found.unread) == (0, (0, 100))
        assert found.explained > 100
        with store.engine.begin() as connection:
            connection.execute(text("DELETE FROM writes WHERE snapshot = 7"))
        left = compared(options, Area.FRESH).differences
        assert [(each.kind.name, each.side) for each in left] == [("writes", "only in the other")]
        assert replayed(log, options).is_switched
        with open_store(options) as after:
            assert digest_in(after) == law(log)


class TestNewStore:
    def test_an_empty_store_is_filled(self, log: LocalLog, options: StoreOptions) -> None:
        append(log, 0, 100)
        assert replayed(log, options).is_switched
        with open_store(options) as after:
            assert digest_in(after) == law(log)
        assert not any(has_area(options, area) for area in Area)

    def test_the_rows_of_another_store_come_first(self, log: LocalLog, options: StoreOptions, tmp_path: Path) -> None:
        old = StoreOptions.at(str(tmp_path / "old.db"))
        append(log, 0, 100)
        with open_store(old) as before:
            write_all(log, before)
        append(log, 100, 150)
        result = replayed(log, options, copied=CopiedStore("store:old.db", old))
        assert result.is_switched
        assert result.events == 50
        with open_store(options) as after:
            assert digest_in(after) == law(log)
        found = compared(options, old)
        assert (found.differing, found.unread) == (0, (0, 50)), "rows of two databases come in the same order"


def view_names(store: Store) -> list[str]:
    schema = None if store.engine.dialect.name == "sqlite" else store.target.database
    return sorted(inspect(store.engine).get_view_names(schema))


def test_the_law() -> None:
    """The helpers compare with the law, and not with what was written."""
    rows = RowSet()
    rows.merge(map_event(EXAMPLES[0]))
    assert rows.digest() != RowSet().digest()
    assert Codec().decode(Codec().encode(EXAMPLES[0])) == EXAMPLES[0]
