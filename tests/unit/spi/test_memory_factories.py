"""The factories that tests of drivers name in a configuration."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from headwater.spi.factories import listener_factories
from headwater.testing.examples import EXAMPLES
from headwater.testing.listeners import batch
from headwater.testing.memory import (
    DurableMemoryFactory,
    MemoryContext,
    MemoryFactory,
    arrived,
    await_arrival,
    forget,
    target_of,
)


def context(name: str) -> MemoryContext:
    return MemoryContext(name, {}, ThreadPoolExecutor())


def test_a_configuration_can_name_them() -> None:
    module = "headwater.testing.memory"
    factories = listener_factories(f"a={module}:MemoryFactory, b={module}:DurableMemoryFactory")
    assert factories.faults == ()
    assert [type(each.factory) for each in factories.found] == [MemoryFactory, DurableMemoryFactory]


def test_what_arrived_is_found_by_name() -> None:
    plain, durable = MemoryFactory().create(context("plain")), DurableMemoryFactory().create(context("durable"))
    plain.on_event(EXAMPLES[0])
    durable.handle(batch(EXAMPLES[:2]))
    durable.handle(batch(EXAMPLES[:3]))
    assert arrived("plain") == list(EXAMPLES[:1])
    assert arrived("durable") == list(EXAMPLES[:3])
    for name in ("plain", "durable"):
        forget(name)
        assert arrived(name) == []


def test_waiting_ends_with_what_there_was() -> None:
    target_of("waited").bring(list(EXAMPLES[:1]), 1)
    assert await_arrival("waited", bool) == list(EXAMPLES[:1])
    with pytest.raises(TimeoutError, match="only: CreateDatabase"):
        await_arrival("waited", lambda events: len(events) > 1, timeout=0.02)
    forget("waited")


def test_a_context_keeps_what_it_was_reported() -> None:
    given_context = context("kafka")
    given_context.report_problem("transport", "the broker is away")
    assert given_context.problems == [("transport", "the broker is away")]
