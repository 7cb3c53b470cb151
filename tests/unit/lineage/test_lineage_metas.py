"""Stores by their names: the ones that are here, and those of others."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing, closing
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path

import pytest

from headwater import plugins
from headwater.errors import ConfigurationError, PluginError
from headwater.lineage.api import LINEAGE_META, DataLineage, LineageMeta, LineageMetaContext, TableLineage
from headwater.lineage.async_iteration import iterate_in_thread
from headwater.lineage.meta import (
    DatabaseLineageMeta,
    MemoryLineageMeta,
    ThreadedLineageMeta,
    open_async_lineage_meta,
    open_lineage_meta,
)
from headwater.lineage.meta.factories import lineage_meta_factory
from headwater.lineage.store import open_store

PLUGIN = """
from headwater.lineage.meta import MemoryLineageMeta

class Factory:
    def identifier(self):
        return "attic"

    def create(self, context):
        return Attic(context.options)

class Attic(MemoryLineageMeta):
    def __init__(self, options):
        super().__init__()
        self.place = options["attic.place"]
"""


class NoFactory:
    """It has no methods."""


class HalfStore:
    def store_source_table_lineage(self, entity: TableLineage) -> None: ...


class HalfStoreFactory:
    def identifier(self) -> str:
        return "half"

    def create(self, context: LineageMetaContext) -> HalfStore:
        return HalfStore()


def test_memory_and_jdbc_are_there(tmp_path: Path) -> None:
    assert set(plugins.names(LINEAGE_META)) >= {"jdbc", "memory"}
    assert isinstance(open_lineage_meta({"lineage-meta": "memory"}), MemoryLineageMeta)
    for options in ({}, {"lineage-meta": "jdbc"}):
        store = open_lineage_meta({**options, "jdbc.url": str(tmp_path / "store.db"), "type": "paimon"})
        assert isinstance(store, DatabaseLineageMeta)
        store.close()
    for name in ("jdbc", "memory"):
        assert lineage_meta_factory(name).identifier() == name


@pytest.mark.parametrize("name", ["jdbc", "memory"])
def test_a_deletion_between_the_two_sides_of_a_barrier_hides_the_earlier_one(name: str, tmp_path: Path) -> None:
    """Sources and sinks are told by themselves, and become one commit: it is heard of again after the deletion."""
    options = {"lineage-meta": name} | ({"jdbc.url": str(tmp_path / "store.db")} if name == "jdbc" else {})
    with closing(open_lineage_meta(options)) as store:
        assert isinstance(store, DatabaseLineageMeta | MemoryLineageMeta)
        now = datetime.now(timezone.utc)
        source, sink = (
            DataLineage(job="etl", barrier_id=5, database="db", table=table, snapshot_id=1, create_time=now)
            for table in ("orders", "daily")
        )
        store.store_source_data_lineage(source)
        store.delete_data_lineage("etl")
        store.store_sink_data_lineage(sink)
        assert list(store.source_data_lineages()) == []
        assert [each.table for each in store.sink_data_lineages()] == ["daily"]


def test_a_store_of_somebody_else_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an installed distribution brings it."""
    (tmp_path / "attic_of_lineage.py").write_text(PLUGIN)
    described = tmp_path / "attic_of_lineage-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: attic-of-lineage\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(f"[{LINEAGE_META}]\nattic = attic_of_lineage:Factory\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("attic", "attic_of_lineage:Factory"):
        store = open_lineage_meta({"lineage-meta": name, "attic.place": "under the roof"})
        assert isinstance(store, LineageMeta)
        assert vars(store)["place"] == "under the roof"
        store.store_sink_table_lineage(TableLineage(job="j", database="d", table="t"))
        assert [each.table for each in store.sink_table_lineages()] == ["t"]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"lineage-meta": "jdcb"}, PluginError, "did you mean jdbc"),
        ({"lineage-meta": f"{__name__}:NoFactory"}, PluginError, r"needs the methods identifier\(\) and create"),
        (
            {"lineage-meta": f"{__name__}:HalfStoreFactory"},
            PluginError,
            "created an object of HalfStore, which lacks delete_source_table_lineage, .*, close: derive its class",
        ),
        ({"lineage-meta": "nowhere.at.all:Factory"}, PluginError, "there is no module nowhere"),
        ({}, ConfigurationError, r"jdbc\.url is missing"),
        ({"jdbc.ulr": "x"}, ConfigurationError, r"did you mean jdbc\.url"),
    ],
)
def test_what_can_not_be_opened(options: dict[str, str], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        open_lineage_meta(options)


def test_options_are_in_no_words_of_a_context(caplog: pytest.LogCaptureFixture) -> None:
    context = LineageMetaContext({"jdbc.password": "5ecret"})
    logging.getLogger(__name__).warning("%s %r", context, context)
    assert "5ecret" not in caplog.text


def test_closing_early_frees_the_connection(tmp_path: Path) -> None:
    async def check() -> None:
        store = await open_async_lineage_meta({"jdbc.url": str(tmp_path / "store.db")})
        assert isinstance(store, ThreadedLineageMeta)
        for number in range(30):
            await store.store_sink_table_lineage(TableLineage(job=f"j{number}", database="d", table="t"))
        pool = vars(vars(store)["_store"])["_engine"].pool
        async with aclosing(store.sink_table_lineages()) as found:
            assert (await anext(found)).table == "t"
            assert pool.checkedout() == 1
        assert pool.checkedout() == 0
        await store.close()

    asyncio.run(check())


def test_what_is_cancelled_while_a_thread_fetches_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither before the thread has let go of it, nor never."""
    closed = []
    module = import_module("headwater.lineage.async_iteration")
    close = module._PortionReader.close

    async def check() -> None:
        entered, go_on = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def slow():  # type: ignore[no-untyped-def]
            try:
                for number in range(3):
                    loop.call_soon_threadsafe(entered.set)
                    asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(60)
                    yield number
            finally:
                closed.append(True)

        def close_now(source: object) -> None:
            loop.call_soon_threadsafe(go_on.set)
            close(source)

        async def read() -> list[int]:
            return [each async for each in iterate_in_thread(slow)]

        monkeypatch.setattr(module._PortionReader, "close", close_now)

        reading = asyncio.ensure_future(read())
        await entered.wait()
        reading.cancel()
        (ended,) = await asyncio.gather(reading, return_exceptions=True)
        assert isinstance(ended, asyncio.CancelledError)

    asyncio.run(check())
    assert closed == [True]


def test_all_of_many_portions_come_in_their_order() -> None:
    async def check() -> list[int]:
        return [each async for each in iterate_in_thread(lambda: iter(range(5000)))]

    assert asyncio.run(check()) == list(range(5000))


def test_a_store_can_be_asked_in_words(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store.db")) as store:
        assert repr(store) == f"Store({tmp_path}/store.db)"
