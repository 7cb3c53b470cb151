"""Where alerts go: a webhook, Slack or what takes its JSON, a command. Each gets its alerts in order, one at a time."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from typing import Any, Final, Protocol

from cloudevents.http import CloudEvent

from headwater.errors import TerminalError, TransientError
from headwater.events.redaction import READ, redacted_excerpt
from headwater.forwarders.alerts.rule_file import AlertWebhookOptions, CommandOptions, DestinationOptions, SlackOptions
from headwater.forwarders.webhook.cloud_events import structured
from headwater.forwarders.webhook.http_endpoint import HttpEndpoint
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
