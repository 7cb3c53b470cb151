"""Webhooks keep the contract of forwarders, in each of their modes."""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest

from headwater.events import Event
from headwater.forwarders.api import Forwarder, ForwarderContext
from headwater.forwarders.webhook import WebhookForwarder
from headwater.testing.forwarders import ForwarderContract
from tests.kit.forwarders.webhook_server import WebhookAnswer, WebhookRequest, webhook_server

pytestmark = pytest.mark.slow


class TestStructured(ForwarderContract):
    mode: ClassVar[str] = "structured"

    @pytest.fixture(autouse=True)
    def _server(self) -> Iterator[None]:
        with webhook_server() as self.server:
            yield

    def create(self, context: ForwarderContext) -> Forwarder:
        options = {"url": self.server.url, "mode": self.mode, **context.options}
        return WebhookForwarder(ForwarderContext(context.name, options, context.lineage))

    def arrived(self) -> Sequence[Hashable]:
        return [each["id"] for each in self.server.accepted]

    def identities(self, event: Event) -> Sequence[Hashable]:
        return [str(event.event_id)]

    def contents(self) -> Any:
        return sorted(each["id"] for each in self.server.events())

    @contextmanager
    def away(self) -> Generator[None]:
        self.server.stop()
        yield
        self.server.start()

    @contextmanager
    def hanging(self) -> Generator[None]:
        accept = self.server.answer

        def hang(request: WebhookRequest) -> WebhookAnswer:
            accept(request)
            return WebhookAnswer(fault="hang")

        self.server.answer = hang  # type: ignore[method-assign]
        yield
        self.server.answer = accept  # type: ignore[method-assign]
        self.server.released.set()

    @contextmanager
    def refusing(self, event: Event) -> Generator[None]:
        self.server.refused = {str(event.event_id)}
        yield
        self.server.refused = set()


@pytest.mark.long
class TestBinary(TestStructured):
    mode = "binary"


@pytest.mark.long
class TestBatched(TestStructured):
    mode = "batched"
