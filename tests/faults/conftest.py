"""What the fault tests share: one broker behind a proxy for all of a worker's tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # most fault tests need no broker
    from tests.kit.kafka.stage import Stage


@pytest.fixture(scope="session")
def _shared_stage() -> Iterator[Stage]:
    from tests.kit.kafka.stage import stage

    with stage() as shared:
        yield shared


@pytest.fixture
def staged(_shared_stage: Stage) -> Iterator[Stage]:
    """The broker, which runs and is reached when a test begins; topics are each test's own."""
    _shared_stage.come_back()
    yield _shared_stage
    _shared_stage.come_back()
