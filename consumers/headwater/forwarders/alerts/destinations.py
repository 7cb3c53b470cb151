"""Where alerts go: a webhook, Slack or what takes its JSON, a command. Each gets its alerts in order, one at a time.

Brings alerts from the outbox to their destinations, each at its own pace: one that is away delays no other.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol

from cloudevents.http import CloudEvent

from headwater.errors import HeadwaterError, TerminalError, TransientError
from headwater.events.redaction import READ, redact, redacted_excerpt
from headwater.forwarders.alerts.rule_file import AlertWebhookOptions, CommandOptions, DestinationOptions, SlackOptions
from headwater.forwarders.alerts.store import AlertStore, OutboxMessage
from headwater.forwarders.http_delivery import RefusedContentError
from headwater.forwarders.webhook.http_client import HttpEndpoint
from headwater.forwarders.webhook.messages import structured
from headwater.spi import CheckResult

_EXCERPT: Final = 300
_SOURCE: Final = "urn:headwater:alerts"


class Destination(Protocol):
    """Takes alerts. Its errors tell what is to become of one, as those of a forwarder do."""

    async def send(self, body: str) -> None:
        """Return when the alert, a JSON object, has arrived."""
        ...

    async def check(self) -> list[CheckResult]:
        """Look whether it is there, without sending anything."""
        ...

    async def close(self) -> None: ...


class WebhookDestination:
    """Gets each alert as a CloudEvent."""

    def __init__(self, options: AlertWebhookOptions) -> None:
        self._endpoint = HttpEndpoint(options)

    async def send(self, body: str) -> None:
        alert: dict[str, Any] = json.loads(body)
        attributes = {
            "specversion": "1.0",
            "id": alert["id"],
            "source": _SOURCE,
            "type": "headwater.alert.v1",
            "time": alert["time"],
            "datacontenttype": "application/json",
        }
        headers, content = structured(CloudEvent(attributes, alert))
        await self._endpoint.post(alert["id"], headers, content)

    async def check(self) -> list[CheckResult]:
        results, _ = await self._endpoint.check({})
        return results

    async def close(self) -> None:
        await self._endpoint.close()


class SlackDestination:
    """An incoming webhook of Slack, Mattermost, Rocket.Chat and others."""

    def __init__(self, options: SlackOptions) -> None:
        self._endpoint = HttpEndpoint(options)

    async def send(self, body: str) -> None:
        await self._endpoint.post("alert", {"content-type": "application/json"}, body.encode())

    async def check(self) -> list[CheckResult]:
        """What Slack answers to a question about rights says nothing."""
        results, _ = await self._endpoint.check({})
        return results[:1]

    async def close(self) -> None:
        await self._endpoint.close()


class CommandDestination:
    """A program that is started for each alert. It has to end with 0 in time."""

    def __init__(self, options: CommandOptions) -> None:
        self._command = options.command
        self._timeout = options.timeout

    async def send(self, body: str) -> None:
        await asyncio.to_thread(self._run, body.encode())

    def _run(self, body: bytes) -> None:
        program = self._command[0]
        with tempfile.TemporaryFile() as errors:
            try:
                process = subprocess.Popen(  # noqa: S603 - the file of rules names it
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    start_new_session=True,
                )
            except OSError as e:
                raise TerminalError(f"{program} can't be started: {e.strerror}; correct command") from None
            with process:
                try:
                    process.communicate(body, self._timeout)
                except subprocess.TimeoutExpired:
                    with suppress(ProcessLookupError):  # it, and what it has started
                        os.killpg(process.pid, signal.SIGKILL)
                    raise TransientError(f"{program} didn't end within {self._timeout:g} s, and was killed") from None
            if process.returncode:
                errors.seek(0)
                words = redacted_excerpt(errors.read(4 * READ).decode("utf-8", "replace"), _EXCERPT)
                raise TransientError(f"{program} ended with {process.returncode} ({words})")

    async def check(self) -> list[CheckResult]:
        program = self._command[0]
        if shutil.which(program) is not None:
            return [CheckResult.ok("command", f"{program} can be started")]
        return [CheckResult.error("command", f"{program} is no program that can be started", "correct command")]

    async def close(self) -> None:
        """Nothing stays open."""


def destination_of(options: DestinationOptions) -> Destination:
    """Create a destination. A ConfigurationError if a file that it needs is missing or wrong."""
    if isinstance(options, AlertWebhookOptions):
        return WebhookDestination(options)
    return SlackDestination(options) if isinstance(options, SlackOptions) else CommandDestination(options)


_LOG: Final = logging.getLogger(__name__)
_SHORTEST: Final = 1.0
_LONGEST: Final = 300.0
_SHORTEST_TERMINAL: Final = 60.0
_LONGEST_TERMINAL: Final = 600.0


class Dispatcher:
    """Delivers the alerts of one destination, in order."""

    def __init__(
        self, name: str, destination: Destination, store: AlertStore, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name: Final = name
        self.destination: Final = destination
        self.error: str | None = None
        """Why it waits, if it does."""
        self._store = store
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._due_at = 0.0
        self._wait = 0.0

    def start(self) -> None:
        """Deliver what there is in a task of its own, unless it does so already, or waits after a failure."""
        if (self._task is None or self._task.done()) and self._clock() >= self._due_at:
            self._task = asyncio.get_running_loop().create_task(self._deliver())

    async def settle(self) -> None:
        """Wait until it has delivered what it could."""
        if self._task is not None:
            await self._task

    async def close(self, timeout: float) -> None:
        """Let it finish; what it can't deliver in that time is delivered by the next process."""
        if self._task is not None:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._task, timeout)
        await self.destination.close()

    async def _deliver(self) -> None:
        try:
            await self._deliver_all()
        except Exception as e:  # noqa: BLE001 - a fault here must not end the forwarder
            self._delay(e, _SHORTEST_TERMINAL, _LONGEST_TERMINAL)
            _LOG.exception("alerts for %s can't be delivered", self.name)

    async def _deliver_all(self) -> None:
        while messages := self._store.messages(self.name):
            for message in messages:
                if not await self._send(message):
                    return
        self.error = None

    async def _send(self, message: OutboxMessage) -> bool:
        """Return whether the next may be sent."""
        try:
            await self.destination.send(message.body)
        except RefusedContentError as e:
            _LOG.error("%s refuses an alert: %s", self.name, redact(str(e)))
            self._store.settle_message(message.id, str(redact(str(e))))
            return True
        except HeadwaterError as e:
            if isinstance(e, TerminalError):
                self._delay(e, _SHORTEST_TERMINAL, _LONGEST_TERMINAL)
            else:
                self._delay(e, _SHORTEST, _LONGEST)
            return False
        self._store.settle_message(message.id)
        self._wait = 0.0
        return True

    def _delay(self, error: Exception, shortest: float, longest: float) -> None:
        self._wait = min(max(2 * self._wait, shortest), longest)
        asked = getattr(error, "retry_after", None)
        self._due_at = self._clock() + max(self._wait, min(asked or 0.0, longest))
        self.error = f"alerts wait for {self.name}: {redact(str(error) or type(error).__name__)}"
