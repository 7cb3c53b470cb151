"""The forwarder: applies rules to events, remembers what was raised, and has it delivered."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import Field

from headwater.config import Config, Seconds, read_config
from headwater.errors import TransientError
from headwater.events import Event
from headwater.forwarders.alerts.conditions import RuleFinding
from headwater.forwarders.alerts.destinations import Dispatcher, destination_of
from headwater.forwarders.alerts.evaluation import AlertEvaluator, alert_of, rules_by_kind
from headwater.forwarders.alerts.rule_file import read_rule_file
from headwater.forwarders.alerts.store import AlertStore
from headwater.forwarders.api import BusEvent, ForwarderContext
from headwater.spi import CheckResult

DAY: Final = 86_400.0


class AlertOptions(Config):
    """Where the rules are, and how old events may be."""

    rules: str = Field(min_length=1)
    """A TOML file."""
    max_age: Seconds = Field(default=DAY, gt=0, le=30 * DAY)
    """Of events that happened longer ago nobody hears: so a replay, or a new forwarder, sends no old alerts."""
    remember: Seconds = Field(default=35 * DAY, ge=DAY)
    """For `column-changed`: a job that wasn't seen reading a column for so long doesn't read it any more."""


_LOG: Final = logging.getLogger(__name__)
_MOST_AHEAD: Final = 300.0
"""An event's time counts at most so much later than the bus got it: no clock that is wrong holds back an alert."""
_PRUNE_SECONDS: Final = 3600.0
_KEEP_MESSAGES: Final = 7 * DAY
_KEEP_TABLES: Final = 800 * DAY
_CLOSE_SECONDS: Final = 8.0


class AlertForwarder:
    """Raises alerts. Run one process of it: rules have to see the events of all partitions."""

    def __init__(self, context: ForwarderContext, *, clock: Callable[[], float] = time.time) -> None:
        options = read_config(AlertOptions, context.options)
        self._options = options
        self._file = read_rule_file(Path(options.rules))
        self._clock = clock
        self._store = AlertStore(context.directory)
        self._evaluator = AlertEvaluator(self._file, self._store, options.max_age)
        self._dispatchers = [
            Dispatcher(name, destination_of(each), self._store) for name, each in self._file.destinations.items()
        ]
        self._preview: AlertEvaluator | None = None
        self._prune_at = 0.0

    async def handle(self, batch: Sequence[BusEvent]) -> None:
        """Return when all alerts of these events are on disk. They are delivered meanwhile, and after that."""
        now = self._clock()
        with self._store.transaction():
            for each in batch:
                self._evaluator.take(each.event, _seconds_of(each), now)
        self._start()

    async def tick(self, caught_up_at: datetime | None) -> None:
        now = self._clock()
        with self._store.transaction():
            self._evaluator.take_time(None if caught_up_at is None else caught_up_at.timestamp(), now)
        if now >= self._prune_at:
            self._prune(now)
        self._start()
        errors = [dispatcher.error for dispatcher in self._dispatchers if dispatcher.error is not None]
        if errors:
            raise TransientError("; ".join(errors))

    def _start(self) -> None:
        for dispatcher in self._dispatchers:
            dispatcher.start()

    def _prune(self, now: float) -> None:
        """Forget what can't count any more: a copy of an event that old raises nothing in any case."""
        self._prune_at = now + _PRUNE_SECONDS
        oldest = now - self._options.max_age - _PRUNE_SECONDS
        self._evaluator.prune(alterations=oldest, reads=now - self._options.remember, tables=now - _KEEP_TABLES)
        lost = self._store.prune(raised=oldest, messages=now - _KEEP_MESSAGES)
        for name, count in lost:
            _LOG.error("%d alerts for %s are given up: it took none for a week", count, name)

    async def settle(self) -> None:
        """Wait until each destination has got what it takes now."""
        self._start()
        await asyncio.gather(*(dispatcher.settle() for dispatcher in self._dispatchers))

    async def check(self) -> AsyncIterator[CheckResult]:
        rules = self._file.rules
        yield CheckResult.ok("rules", f"{self._options.rules} has {len(rules)}: {rules_by_kind(rules)}")
        for dispatcher in self._dispatchers:
            for result in await dispatcher.destination.check():
                yield CheckResult(f"{dispatcher.name}: {result.step}", result.status, result.message, result.advice)
            count, why = self._store.refusals(dispatcher.name)
            if count:
                yield CheckResult.warning(f"{dispatcher.name}: refused", f"it refused {count} alerts, the last: {why}")

    def preview(self, event: Event) -> Iterator[str]:
        """Yield the texts of alerts. Of tables and columns it knows what the events before told."""
        if self._preview is None:
            self._preview = AlertEvaluator(self._file, AlertStore(None), self._options.max_age)
        for finding in self._preview.findings(event, event.time.timestamp()):
            yield _preview_text(finding)

    async def close(self) -> None:
        await asyncio.gather(*(dispatcher.close(_CLOSE_SECONDS) for dispatcher in self._dispatchers))
        self._store.close()


def _seconds_of(each: BusEvent) -> float:
    seconds = each.event.time.timestamp()
    appended = each.record.append_time
    return seconds if not appended else min(seconds, appended / 1_000_000 + _MOST_AHEAD)


def _preview_text(finding: RuleFinding) -> str:
    rule = finding.rule
    return f"to {', '.join(rule.to)}: [{rule.severity}] {rule.name}: {alert_of(finding)['text']}"
