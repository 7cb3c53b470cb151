"""Questions about jobs, runs and gaps as methods, for threads and for event loops."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headwater.events import Committed, Input, JobStarted, Output
from headwater.events.jobs import JobType
from headwater.lineage import AsyncLineage, Lineage
from headwater.lineage.mapping import map_event
from tests.kit.lineage.scripted_producer import ScriptedProducer, at, place
from tests.kit.stores import open_new_store

METHODS = {
    "complete_until": (),
    "gaps": (),
    "jobs_of": ("sales.daily",),
    "tables_of": ("etl",),
    "runs": ("etl",),
    "history": ("sales.daily",),
    "schema_changes": ("sales.daily", 1, 1),
    "aliases": ("sales.daily",),
    "generations": ("sales.daily",),
    "lateness": ("sales.daily",),
    "uses": ("sales.orders",),
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    file: Path = tmp_path_factory.mktemp("stores") / "lineage.db"
    producer = ScriptedProducer(1)
    producer.emit(0, JobStarted, job_type=JobType.BATCH)
    output = Output(**place("daily"), snapshot=1, made_from=(0,))
    producer.emit(1, Committed, barrier=1, inputs=(Input(**place("orders"), snapshot=1),), outputs=(output,))
    with open_new_store(f"sqlite:///{file}") as store:
        store.merge(row for event in producer.events for row in map_event(event))
    return f"sqlite:///{file}"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.slow
def test_both_answer_the_same(url: str, method: str) -> None:
    async def ask() -> object:
        async with await AsyncLineage.open(url) as lineage:
            return await getattr(lineage, method)(*METHODS[method], now=at(2))

    with Lineage.open(url) as lineage:
        answer = getattr(lineage, method)(*METHODS[method], now=at(2))
        assert len(lineage.jobs_of("sales.daily", now=at(2))) == 1
    found = asyncio.run(ask())
    assert found == answer
