"""A forwarder knows the job lineage that a commit names, also after a restart, and in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from headwater.events.jobs import Committed, JobLineage
from headwater.forwarders.api import BusEvent
from headwater.forwarders.known_lineage import LineageCache
from headwater.forwarders.state import ForwarderState
from headwater.testing.examples import EXAMPLES
from tests.kit.forwarders.stage import ScriptedForwarder, Stage, commit

LINEAGE = next(each for each in EXAMPLES if isinstance(each, JobLineage))


def lineage(number: int) -> JobLineage:
    return LINEAGE.model_copy(update={"fingerprint": number.to_bytes(16, "big"), "sequence": number})


def test_it_is_known_when_its_commit_is_handled_and_though_a_filter_leaves_it_out(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    seen: list[Any] = []

    async def look(batch: Sequence[BusEvent]) -> None:
        commits = [each.event for each in batch if isinstance(each.event, Committed)]
        seen.extend(stage.lineage.get(each.fingerprint or b"") for each in commits)

    stage.bus.append(LINEAGE)
    stage.bus.append(commit(1, fingerprint=LINEAGE.fingerprint))
    stage.forward(ScriptedForwarder(look), exclude_kinds="JobLineage")
    assert seen == [LINEAGE]
    stage.state.close()


def test_it_survives_the_process(tmp_path: Path) -> None:
    with ForwarderState(tmp_path, "x") as state:
        LineageCache(state).remember([lineage(1)])
    with ForwarderState(tmp_path, "x") as state:
        assert LineageCache(state).get(lineage(1).fingerprint) == lineage(1)
        assert LineageCache(state).get(lineage(2).fingerprint) is None


def test_the_newest_are_kept_on_disk_and_few_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1_000))
    monkeypatch.setattr("headwater.forwarders.known_lineage.wall_micros", lambda: next(clock))
    with ForwarderState(tmp_path, "x") as state:
        cache = LineageCache(state, most=10, cache_bytes=5_000)
        for number in range(30):
            cache.remember([lineage(number)])
        cache.remember([lineage(21)])
        cache.remember([lineage(30)])
        known = [number for number in range(31) if cache.get(lineage(number).fingerprint)]
        assert known == list(range(21, 31)), "21 was repeated, so 20 went for 30"
        assert cache._size <= 5_000
        assert len(cache._cache) < 10
