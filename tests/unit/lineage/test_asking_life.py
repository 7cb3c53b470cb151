"""Questions about jobs, runs and gaps as methods, for threads and for event loops."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headwater.events import Committed, Input, JobStarted, JobType, Output
from headwater.lineage import AsyncLineage, Lineage
from headwater.lineage.law import changes
from headwater.lineage.store import open_store
from tests.unit.lineage.scribe import Scribe, at, place

METHODS = {
    "complete_until": (),
    "gaps": (),
    "jobs_of": ("sales.daily",),
    "tables_of": ("etl",),
    "runs": ("etl",),
    "history": ("sales.daily",),
    "schema_changes": ("sales.daily", 1, 1),
    "aliases": ("sales.daily",),
    "lives": ("sales.daily",),
    "late": ("sales.daily",),
    "uses": ("sales.orders",),
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    file: Path = tmp_path_factory.mktemp("stores") / "lineage.db"
    scribe = Scribe(1)
    scribe.tell(0, JobStarted, job_type=JobType.BATCH)
    output = Output(**place("daily"), snapshot=1, made_from=(0,))
    scribe.tell(1, Committed, barrier=1, inputs=(Input(**place("orders"), snapshot=1),), outputs=(output,))
    with open_store(f"sqlite:///{file}") as store:
        store.merge(row for event in scribe.told for row in changes(event))
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
    told = asyncio.run(ask())
    assert told == answer
