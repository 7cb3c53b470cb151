"""Forwarders for tests that run in processes of their own: named as `tests.kit.forwarders.targets:Recorder`."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from headwater.errors import ConfigurationError, TransientError
from headwater.events import Event
from headwater.forwarders.api import BusEvent, ForwarderContext, RefusedEventsError
from headwater.spi import CheckResult


class Recorder:
    """Appends a line for each event to a file, forced to the disk: its id, partition, key and the time.

    Options: `file`; `away`, a file that makes it fail while it exists; `refuse`, a kind; `poison`, a sequence number
    that it fails on for ever.
    """

    def __init__(self, context: ForwarderContext) -> None:
        unknown = context.options.keys() - {"file", "away", "refuse", "poison"}
        if unknown or "file" not in context.options:
            raise ConfigurationError(f"no option {', '.join(unknown)}; there are file, away, refuse, poison")
        self._file = Path(context.options["file"])
        self._away = Path(context.options.get("away", self._file.with_suffix(".away")))
        self._refuse = context.options.get("refuse")
        self._poison = int(context.options.get("poison", -1))

    async def handle(self, batch: Sequence[BusEvent]) -> None:
        self._check_away()
        if any(each.event.sequence == self._poison for each in batch):
            raise TransientError("the target answers 500")
        refused = {index: "not this kind" for index, each in enumerate(batch) if each.event.kind == self._refuse}
        lines = [_line(each) for index, each in enumerate(batch) if index not in refused]
        with self._file.open("a", encoding="utf-8") as file:
            file.write("".join(lines))
            file.flush()
            os.fsync(file.fileno())
        if refused:
            raise RefusedEventsError(refused)

    async def check(self) -> AsyncIterator[CheckResult]:
        yield CheckResult.ok("folder", f"{self._file.parent} is there")
        if self._away.exists():
            yield CheckResult.error("target", "it is away", "bring it back")

    def preview(self, event: Event) -> Iterator[str]:
        yield f"{event.kind} {event.event_id}"

    def _check_away(self) -> None:
        if self._away.exists():
            raise TransientError("the target is away; password=abc123")


class Counter:
    """Keeps in a file how many events it got, after it was away while another file existed."""

    def __init__(self, context: ForwarderContext) -> None:
        self._file = Path(context.options["file"])
        self._away = self._file.with_suffix(".away")
        self._count = 0

    async def handle(self, batch: Sequence[BusEvent]) -> None:
        if self._away.exists():
            raise TransientError("the target is away")
        self._count += len(batch)
        self._file.write_text(str(self._count), "ascii")


class Nothing:
    """Takes everything and does nothing with it."""

    def __init__(self, context: ForwarderContext) -> None: ...

    async def handle(self, batch: Sequence[BusEvent]) -> None: ...


class Hanging:
    """Blocks its thread, as a client without a time limit does."""

    def __init__(self, context: ForwarderContext) -> None: ...

    async def handle(self, batch: Sequence[BusEvent]) -> None:
        time.sleep(3_600)  # noqa: ASYNC251 - that is what is wrong with it


def _line(each: BusEvent) -> str:
    key = each.record.key.hex() if each.record.key else "-"
    return f"{each.event.event_id} {each.record.partition.number} {key} {time.time_ns()}\n"


def recorded(place: Path) -> list[tuple[str, str]]:
    """Return id and key of each event that the file has, in order; of one that came twice the first."""
    lines = place.read_text("utf-8").splitlines() if place.exists() else []
    first = dict.fromkeys((line.split()[0], line.split()[2]) for line in lines)
    return list(first)
