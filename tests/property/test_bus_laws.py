"""Whatever a durable listener does, it ends up with all events, in order, copies apart."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import TerminalError, TransientError
from headwater.events.health import Heartbeat
from headwater.spi import EventRecord, RecordBatch, SpoolPosition
from tests.kit.bus.scripts import QUICK, bus_of, emit_all, firsts, ids
from tests.kit.effort import examples
from tests.kit.waiting import until

pytestmark = pytest.mark.slow

DEEDS = st.sampled_from(
    ["take", "take", "later", "part", "transient", "error", "terminal", "slow", "after", "ahead", "back"]
)
OPTIONS = replace(
    QUICK, batch_count=4, outstanding_count=12, first_backoff=0.001, longest_backoff=0.002, suspended_seconds=0.002
)


class Target:
    """What arrived, over all instances of a listener, and what they are still to do."""

    def __init__(self, deeds: list[str]) -> None:
        self.records: list[EventRecord] = []
        self.deeds = deeds


class Erratic:
    """Does what it is asked to do, one deed for each call; when there is nothing left it just takes.

    Records arrive in order, and an answer is true whatever else is wrong: what it took and gave up may arrive twice.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._pending: list[EventRecord] = []
        self._answer: SpoolPosition | None = None

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        deed = self._next()
        if deed in {"transient", "error", "terminal"}:
            self._raise(deed)
        self._pending.extend(batch)
        if deed == "slow":
            time.sleep(0.005)
        if deed == "later":
            return self._answer
        self._bring(len(self._pending) // 2 if deed == "part" else len(self._pending))
        if deed == "after":
            self._raise("transient")
        return self._said(deed)

    def flush(self, timeout: float) -> SpoolPosition | None:
        deed = self._next()
        if deed in {"transient", "error", "terminal"}:
            self._raise(deed)
        if deed not in {"later", "slow"}:
            self._bring(len(self._pending))
        return self._said(deed)

    def close(self, timeout: float) -> bool:
        return not self._pending

    def _said(self, deed: str) -> SpoolPosition | None:
        if deed == "ahead" and self._answer is not None:
            return SpoolPosition(self._answer + 1_000)
        return None if deed == "back" else self._answer

    def _next(self) -> str:
        return self._target.deeds.pop(0) if self._target.deeds else "take"

    def _raise(self, deed: str) -> None:
        self._pending.clear()
        raise {"transient": TransientError, "error": ValueError, "terminal": TerminalError}[deed](deed)

    def _bring(self, count: int) -> None:
        brought, self._pending = self._pending[:count], self._pending[count:]
        self._target.records.extend(brought)
        if brought:
            self._answer = brought[-1].position


@given(deeds=st.lists(st.lists(DEEDS, max_size=25), min_size=1, max_size=3), count=st.integers(1, 40))
@settings(max_examples=examples(30))
def test_every_durable_listener_has_all_events_in_order(deeds: list[list[str]], count: int) -> None:
    targets = {f"l{number}": Target(list(each)) for number, each in enumerate(deeds)}

    def make(context: Any) -> Erratic:
        return Erratic(targets[context.name])

    with tempfile.TemporaryDirectory() as spools:
        with bus_of(Path(spools), dict.fromkeys(targets, make), options=OPTIONS) as bus:
            emitted = emit_all(bus, [Heartbeat()] * count)
            until(lambda: bus.flush(1), lambda: str(bus.report()), pause=0)
            assert bus.stop(60)
        assert not list(Path(spools).iterdir())
    for name, target in targets.items():
        assert firsts(target.records) == ids(emitted), name
