"""The questions as methods: each on a connection of its own, in a loop too; what streams is closed where it is left."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from headwater.lineage import AsyncLineage, Lineage
from tests.kit.lineage.all_stories import streams
from tests.kit.lineage.scripted_producer import store
from tests.kit.lineage.stories import StoryProducer
from tests.kit.stores import open_new_store


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'lineage.db'}"
    producer = StoryProducer()
    streams(producer)
    with open_new_store(url) as opened, opened.engine.begin() as connection:
        store(connection, producer)
    return url


def test_methods_answer(url: str) -> None:
    with Lineage.open(url) as lineage:
        answer = lineage.upstream_snapshots("db.b@2")
        streamed = list(lineage.stream_upstream_snapshots("db.b@2"))
        assert sorted(streamed, key=repr) == sorted(answer, key=repr)
        assert {each.source.label for each in lineage.upstream_tables("db.b", depth=1)} == {"lake.db.a", "lake.db.x"}
        left = lineage.stream_downstream_snapshots("db.raw@5")
        assert next(left).target.label == "lake.db.a@5"
        left.close()


def test_the_same_in_a_loop(url: str) -> None:
    async def ask() -> tuple[set[str], str]:
        async with await AsyncLineage.open(url) as lineage:
            state = await lineage.upstream_state("db.b@3", depth=1)
            async with aclosing(lineage.stream_upstream_snapshots("db.b@2")) as edges:
                first = await anext(edges)
            return {each.source.label for each in state}, first.target.label

    assert asyncio.run(ask()) == ({"lake.db.a@(0..8]", "lake.db.x@1..2"}, "lake.db.b@2")
