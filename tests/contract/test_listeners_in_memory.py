"""The contract suites on the listeners that others are compared with, and on some that do it their own way."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import pytest

from headwater.events.envelope import EventId
from headwater.spi import EventRecord
from headwater.testing.listeners import DurableListenerContract
from headwater.testing.memory import MemoryTarget
from tests.kit.bus.memory_listeners import DurableMemoryListenerSuite, MemoryListenerSuite, Partitioned, Transactional

pytestmark = pytest.mark.slow


class TestMemoryListener(MemoryListenerSuite):
    """The plain listener that others are compared with."""


class TestDurableMemoryListener(DurableMemoryListenerSuite):
    """The durable one."""


class TestPartitionedListener(DurableMemoryListenerSuite):
    def create(self) -> Partitioned:
        return Partitioned(self.target)


class TestTransactionalListener(DurableListenerContract):
    """A store: what it receives becomes something else there."""

    ordered = False
    passes_unknown_on = False

    @pytest.fixture(autouse=True)
    def _target(self) -> None:
        self.target: MemoryTarget[EventRecord] = MemoryTarget()

    def delivered(self, listener: Any) -> list[EventId]:
        return [record.event_id for record in self.target.items]

    def refusing(self) -> AbstractContextManager[None]:
        return self.target.refusing()

    def stalling(self) -> AbstractContextManager[None]:
        return self.target.stalling()

    def create(self) -> Transactional:
        return Transactional(self.target)
