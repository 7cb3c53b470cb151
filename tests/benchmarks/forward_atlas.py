"""The Atlas forwarder beside bare httpx that posts the same entities, already made, to the same real Atlas 2.1.0:
python -m tests.benchmarks.forward_atlas

The bare client posts the entities of each event in a request of their own, and reads nothing. The forwarder reads what
Atlas has before it writes, and puts events that don't concern each other into one request. Each round has a namespace
of its own, so that everything is new; `again` is the same events once more, which change nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from itertools import count
from typing import Any

import httpx

from headwater.events import Event
from headwater.forwarders.api import BusEvent
from headwater.forwarders.atlas.mapping import atlas_changes
from headwater.forwarders.atlas.options import AtlasNames
from headwater.forwarders.atlas.resolving import AtlasPlan
from tests.benchmarks.forward_datahub import many
from tests.benchmarks.harness import HEADER, Aims, Compared, compare, row
from tests.kit.atlas import exchange as atlas_exchange
from tests.kit.atlas.server import PASSWORD, USER, AtlasServer
from tests.kit.forwarders.stage import MemoryBus

AIM = 0.7
EVENTS = 10
ROUNDS = 3


def payloads(events: Iterable[Event], namespace: str) -> list[list[dict[str, Any]]]:
    """The entities of each event, where Atlas has nothing of them."""
    found: list[list[dict[str, Any]]] = []
    for event in events:
        plan = AtlasPlan()
        plan.add(atlas_changes(event, AtlasNames(namespace=namespace)), {})
        found.append(plan.entities)
    return found


class Sides:
    """The two ways. A namespace is used once for new entities, and then again for those that are there."""

    def __init__(self, url: str, events: list[Event]) -> None:
        self._url = url
        self._events = events
        self._numbers = count(1)
        self._last = {"ours": "", "bare": ""}
        self._bare = httpx.Client(base_url=f"{url}/api/atlas", auth=(USER, PASSWORD), timeout=120)

    def ours(self, *, again: bool) -> None:
        ours = atlas_exchange.forwarder(self._url, namespace=self._namespace("ours", again=again))
        bus = MemoryBus()
        batch = [BusEvent(event, bus.append(event)) for event in self._events]

        async def go() -> None:
            await ours.handle(batch)
            await ours.close()

        asyncio.run(go())

    def bare(self, *, again: bool) -> None:
        for entities in payloads(self._events, self._namespace("bare", again=again)):
            self._bare.post("/v2/entity/bulk", json={"entities": entities}).raise_for_status()

    def close(self) -> None:
        self._bare.close()

    def _namespace(self, side: str, *, again: bool) -> str:
        if not again:
            self._last[side] = f"{side}{id(self)}x{next(self._numbers)}"
        return self._last[side]


def measure(url: str) -> int:
    aims = Aims()
    print(HEADER)
    for case in ("commit", "lineage", "table_created"):
        sides = Sides(url, many(case)[:EVENTS])
        for again, words in ((False, "new"), (True, "again")):
            ours, bare = partial(sides.ours, again=again), partial(sides.bare, again=again)
            compared = compare(ours, bare, calls=1, rounds=ROUNDS)
            each = Compared(compared.ours / EVENTS, compared.bare / EVENTS, compared.ratio)
            print(row(f"{case}, {words}", each), flush=True)
            if not again:
                aims.at_least(f"{case}: the forwarder beside bare httpx", compared.ratio, AIM)
        sides.close()
    return aims.report()


def main() -> int:
    with AtlasServer() as atlas:
        atlas.register_models()
        return measure(atlas.address)


if __name__ == "__main__":
    raise SystemExit(main())
