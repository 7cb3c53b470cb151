"""The handshake of CloudEvents' webhooks: the receiver is asked for its consent before anything is sent.

It protects those who never wanted our requests. It proves nobody's identity: signatures and tokens do.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from headwater.errors import TerminalError
from headwater.forwarders.http_delivery import response_error
from headwater.forwarders.webhook.http_client import HttpAnswer, HttpEndpoint
from headwater.forwarders.webhook.options import WebhookOptions
from headwater.spi import CheckResult

_MINUTE: Final = 60.0


class Permission:
    """Asks for consent once, and keeps to the rate that was granted."""

    def __init__(
        self,
        options: WebhookOptions,
        target: HttpEndpoint,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._origin = options.origin
        self._rate = options.request_rate
        self._target = target
        self._clock = clock
        self._pause = pause
        self._lock = asyncio.Lock()
        self._is_granted = self._origin is None
        self._interval = 0.0
        self._free_at = 0.0

    @property
    def request_headers(self) -> dict[str, str]:
        """What is asked with."""
        rate = {} if self._rate is None else {"webhook-request-rate": str(self._rate)}
        return {} if self._origin is None else {"webhook-request-origin": self._origin, **rate}

    @property
    def delivery_headers(self) -> dict[str, str]:
        """What every message has to name."""
        return {} if self._origin is None else {"origin": self._origin}

    async def take(self) -> None:
        """Wait until a message may be sent. A TerminalError if the receiver doesn't consent."""
        if self._origin is None:
            return
        async with self._lock:
            if not self._is_granted:
                await self._ask()
            wait = self._free_at - self._clock()
            if wait > 0:
                await self._pause(wait)
            self._free_at = max(self._clock(), self._free_at) + self._interval

    def withdraw(self) -> None:
        """Ask anew before the next message."""
        self._is_granted = self._origin is None

    async def _ask(self) -> None:
        answer = await self._target.ask(self.request_headers)
        error = response_error(self._target.shown, answer.status, retry_after=answer.headers.get("retry-after"))
        if error is not None and not isinstance(error, TerminalError):
            raise error
        if not self._consents(answer):
            raise TerminalError(
                f"{self._target.shown} answers {answer.status} and doesn't consent to requests of {self._origin}: "
                "it has to answer OPTIONS with WebHook-Allowed-Origin; or leave out origin"
            )
        self._interval = _interval(answer.headers.get("webhook-allowed-rate", ""))
        self._is_granted = True

    def _consents(self, answer: HttpAnswer) -> bool:
        """The header alone counts: anybody may answer OPTIONS with 200."""
        return answer.headers.get("webhook-allowed-origin", "").strip() in {self._origin, "*"}

    def judge(self, answer: HttpAnswer) -> CheckResult | None:
        """Return what an answer to the question means."""
        if self._origin is None:
            return None
        if self._consents(answer):
            rate = answer.headers.get("webhook-allowed-rate", "any number of")
            return CheckResult.ok("consent", f"it takes {rate} requests a minute of {self._origin}")
        advice = "let it answer OPTIONS with WebHook-Allowed-Origin, or leave out origin"
        return CheckResult.error("consent", f"it doesn't consent to requests of {self._origin}", advice)


def _interval(rate: str) -> float:
    """Return the seconds between two messages; any rate that is no number is no limit."""
    text = rate.strip()
    return _MINUTE / int(text) if text.isascii() and text.isdigit() and int(text) > 0 else 0.0
