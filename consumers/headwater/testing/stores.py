"""What every lineage store must do, as a test class: subclass it, and say how a store is made.

    class TestMine(LineageMetaContract):
        def create(self): return MyLineageMeta(...)

    class TestMineInALoop(AsyncLineageMetaContract):
        def create_async(self): return MyAsyncLineageMeta(...)

It needs `pytest`. More cases will be added within a major version: a store that keeps the words of
`headwater.lineage.api` passes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import aclosing
from datetime import datetime, timedelta, timezone
from typing import Any, TypeVar

import pytest

from headwater.lineage.api import DataLineage, LineageMeta, TableLineage
from headwater.lineage.meta.factories import AsyncLineageMeta
from headwater.lineage.predicates import Predicate, where

T = TypeVar("T")
_NEAR = timedelta(minutes=5)


def table(job: str = "job1", name: str = "orders", database: str = "sales") -> TableLineage:
    return TableLineage(job=job, database=database, table=name)


def snapshot(barrier: int, number: int, job: str = "job1", name: str = "orders") -> DataLineage:
    return DataLineage(job=job, database="sales", table=name, barrier_id=barrier, snapshot_id=number)


class LineageMetaContract:
    """For stores."""

    def create(self) -> LineageMeta:
        """A store. In one test all of them are the same one, empty at its beginning."""
        raise AssertionError("a suite says how its store is made")

    def test_it_is_a_store(self) -> None:
        store = self.create()
        assert isinstance(store, LineageMeta), "a method of headwater.lineage.api.LineageMeta is missing"
        store.close()

    def test_an_empty_store_has_nothing(self) -> None:
        store = self.create()
        assert [*store.source_table_lineages(), *store.sink_table_lineages()] == []
        assert [*store.source_data_lineages(), *store.sink_data_lineages()] == []

    def test_what_was_stored_is_there_for_everybody_at_once(self) -> None:
        one, other = self.create(), self.create()
        one.store_source_table_lineage(table())
        one.store_sink_table_lineage(table(name="daily"))
        assert _tables(other.source_table_lineages()) == [("job1", "sales", "orders")]
        assert _tables(other.sink_table_lineages()) == [("job1", "sales", "daily")]

    def test_it_is_reported_when_that_was(self) -> None:
        store = self.create()
        store.store_source_table_lineage(table())
        store.store_sink_data_lineage(snapshot(1, 7))
        for lineage in (*store.source_table_lineages(), *store.sink_data_lineages()):
            assert lineage.create_time is not None
            assert abs(lineage.create_time - datetime.now(timezone.utc)) < _NEAR

    def test_storing_what_is_there_changes_nothing(self) -> None:
        store = self.create()
        store.store_source_table_lineage(table())
        (first,) = store.source_table_lineages()
        store.store_source_table_lineage(table())
        assert list(store.source_table_lineages()) == [first], "the first time it was recorded holds"

    def test_sources_and_sinks_of_a_barrier_are_its_own(self) -> None:
        store, other = self.create(), self.create()
        store.store_source_data_lineage(snapshot(1, 3))
        other.store_sink_data_lineage(snapshot(1, 5, name="daily"))
        store.store_source_data_lineage(snapshot(2, 4))
        assert _data(store.source_data_lineages()) == [("job1", 1, "orders", 3), ("job1", 2, "orders", 4)]
        assert _data(store.sink_data_lineages()) == [("job1", 1, "daily", 5)]

    def test_data_lineage_is_table_lineage_too(self) -> None:
        store = self.create()
        store.store_sink_data_lineage(snapshot(1, 5))
        assert _tables(store.sink_table_lineages()) == [("job1", "sales", "orders")]

    def test_deleting_takes_what_a_job_reported_on_that_side(self) -> None:
        store = self.create()
        for job in ("job1", "job2"):
            store.store_source_table_lineage(table(job))
            store.store_sink_table_lineage(table(job))
        store.delete_source_table_lineage("job1")
        assert _tables(store.source_table_lineages()) == [("job2", "sales", "orders")]
        assert len(_tables(store.sink_table_lineages())) == 2
        store.delete_sink_table_lineage("job2")
        assert _tables(store.sink_table_lineages()) == [("job1", "sales", "orders")]

    def test_what_is_stored_after_a_deletion_is_there(self) -> None:
        store = self.create()
        for _ in range(20):  # quicker than a clock ticks
            store.store_sink_table_lineage(table())
            assert len(_tables(store.sink_table_lineages())) == 1
            store.delete_sink_table_lineage("job1")
            assert _tables(store.sink_table_lineages()) == []

    def test_deleting_what_is_not_there_is_no_fault(self) -> None:
        store = self.create()
        store.delete_source_table_lineage("nobody")
        store.delete_sink_table_lineage("nobody")

    def test_predicates_choose(self) -> None:
        store = self.create()
        for number, name in enumerate(("orders", "Orders", "order_lines", "daily")):
            store.store_source_table_lineage(table(f"job{number}", name))
            store.store_sink_data_lineage(snapshot(number, 10 * number, f"job{number}", name))
        lineages = store.source_table_lineages
        assert _names(lineages(where.table == "orders")) == ["orders"]
        assert _names(lineages(where.table.like("order%"))) == ["order_lines", "orders"]
        assert _names(lineages(where.table.like("%\\_%"))) == ["order_lines"]
        assert _names(lineages(~(where.table == "orders") & (where.job < "job2"))) == ["Orders"]
        assert _names(lineages(where.job.in_(["job3", "nobody"]))) == ["daily"]
        assert _names(lineages(where.create_time.is_null())) == []
        made = store.sink_data_lineages
        assert _names(made((where.barrier_id >= 2) | (where.snapshot_id == 0))) == ["daily", "order_lines", "orders"]
        assert _names(made(where.barrier_id > 3)) == []

    def test_tables_of_two_catalogs_are_two(self) -> None:
        store = self.create()
        for catalog, number in (("lake", 3), ("attic", 4)):
            one = table().model_copy(update={"catalog": catalog})
            store.store_source_table_lineage(one)
            store.store_sink_data_lineage(DataLineage(**one.model_dump(), barrier_id=1, snapshot_id=number))
        assert sorted(str(lineage.catalog) for lineage in store.source_table_lineages()) == ["attic", "lake"]
        found = {lineage.catalog: lineage.snapshot_id for lineage in store.sink_data_lineages()}
        assert found == {"lake": 3, "attic": 4}
        assert [lineage.snapshot_id for lineage in store.sink_data_lineages(where.catalog == "lake")] == [3]

    def test_numbers_and_names_of_any_kind(self) -> None:
        store = self.create()
        odd = "a'b\"c`d\\e%f_g\n\N{SNOWMAN}\N{GRINNING FACE}"
        for barrier in (-(2**63), 0, 2**63 - 1):
            lineage = DataLineage(job=odd, database=odd, table=odd, barrier_id=barrier, snapshot_id=-barrier - 1)
            store.store_source_data_lineage(lineage)
        found = {(each.job, each.table, each.barrier_id, each.snapshot_id) for each in store.source_data_lineages()}
        assert found == {(odd, odd, barrier, -barrier - 1) for barrier in (-(2**63), 0, 2**63 - 1)}
        assert _names(store.source_table_lineages(where.table == odd)) == [odd]

    def test_an_iterator_may_be_left_unread(self) -> None:
        store = self.create()
        for number in range(50):
            store.store_sink_table_lineage(table(f"job{number}"))
        for _ in range(30):
            next(store.sink_table_lineages())
        assert len(list(store.sink_table_lineages())) == 50


class _Driven:
    """An asynchronous store, called as a synchronous one: it has to pass the same tests."""

    def __init__(self, store: AsyncLineageMeta, loop: asyncio.AbstractEventLoop) -> None:
        self._store = store
        self._loop = loop

    def store_source_table_lineage(self, entity: TableLineage) -> None:
        self._run(self._store.store_source_table_lineage(entity))

    def delete_source_table_lineage(self, job: str) -> None:
        self._run(self._store.delete_source_table_lineage(job))

    def source_table_lineages(self, predicate: Predicate | None = None) -> Iterator[TableLineage]:
        return self._iterated(self._store.source_table_lineages(predicate))

    def store_sink_table_lineage(self, entity: TableLineage) -> None:
        self._run(self._store.store_sink_table_lineage(entity))

    def sink_table_lineages(self, predicate: Predicate | None = None) -> Iterator[TableLineage]:
        return self._iterated(self._store.sink_table_lineages(predicate))

    def delete_sink_table_lineage(self, job: str) -> None:
        self._run(self._store.delete_sink_table_lineage(job))

    def store_source_data_lineage(self, entity: DataLineage) -> None:
        self._run(self._store.store_source_data_lineage(entity))

    def source_data_lineages(self, predicate: Predicate | None = None) -> Iterator[DataLineage]:
        return self._iterated(self._store.source_data_lineages(predicate))

    def store_sink_data_lineage(self, entity: DataLineage) -> None:
        self._run(self._store.store_sink_data_lineage(entity))

    def sink_data_lineages(self, predicate: Predicate | None = None) -> Iterator[DataLineage]:
        return self._iterated(self._store.sink_data_lineages(predicate))

    def close(self) -> None:
        self._run(self._store.close())

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(coroutine)

    def _iterated(self, rows: AsyncIterator[T]) -> Iterator[T]:
        async def one() -> list[T]:
            async for row in rows:
                return [row]
            return []

        try:
            while row := self._run(one()):
                yield from row
        finally:
            self._run(_close(rows))


async def _close(rows: AsyncIterator[Any]) -> None:
    close = getattr(rows, "aclose", None)
    if close is not None:
        await close()


class AsyncLineageMetaContract(LineageMetaContract):
    """For stores of event loops: all of the above, and what only they can do wrong."""

    loop: asyncio.AbstractEventLoop

    @pytest.fixture(autouse=True)
    def _in_a_loop(self) -> Iterator[None]:
        self.loop = asyncio.new_event_loop()
        yield
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def create_async(self) -> AsyncLineageMeta:
        """As `create`; it is used in one loop only."""
        raise AssertionError("a suite says how its store is made")

    def create(self) -> LineageMeta:
        return _Driven(self.create_async(), self.loop)

    def test_it_is_an_asynchronous_store(self) -> None:
        assert isinstance(self.create_async(), AsyncLineageMeta)

    def test_many_calls_at_once(self) -> None:
        async def check() -> None:
            store = self.create_async()
            jobs = [f"job{number}" for number in range(20)]
            await asyncio.gather(*(store.store_sink_table_lineage(table(job)) for job in jobs))
            for job in jobs:
                assert [lineage.job async for lineage in store.sink_table_lineages(where.job == job)] == [job]

        self.loop.run_until_complete(check())

    def test_what_is_closed_early_can_be_begun_again_and_again(self) -> None:
        async def check() -> None:
            store = self.create_async()
            for number in range(40):
                await store.store_sink_table_lineage(table(f"job{number}"))
            for _ in range(40):
                async with aclosing(store.sink_table_lineages()) as found:  # type: ignore[type-var]
                    async for _row in found:
                        break
            assert len([lineage async for lineage in store.sink_table_lineages()]) == 40

        self.loop.run_until_complete(check())

    def test_what_is_cancelled_can_be_begun_again_and_again(self) -> None:
        async def check() -> None:
            store = self.create_async()
            for number in range(40):
                await store.store_sink_table_lineage(table(f"job{number}"))

            async def read() -> int:
                return len([lineage async for lineage in store.sink_table_lineages()])

            for turns in range(40):
                reading = asyncio.ensure_future(read())
                for _ in range(turns % 4):
                    await asyncio.sleep(0)
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
            assert await read() == 40

        self.loop.run_until_complete(check())


def _tables(found: object) -> list[tuple[str, str, str]]:
    return sorted((each.job, each.database, each.table) for each in found)  # type: ignore[attr-defined]


def _data(found: object) -> list[tuple[str, int, str, int]]:
    return sorted((each.job, each.barrier_id, each.table, each.snapshot_id) for each in found)  # type: ignore[attr-defined]


def _names(found: object) -> list[str]:
    return sorted(each.table for each in found)  # type: ignore[attr-defined]
