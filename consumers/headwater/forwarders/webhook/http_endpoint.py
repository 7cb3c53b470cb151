"""One place that requests go to, with what proves who sends them, and what its answers mean."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from headwater.errors import HeadwaterError, TerminalError
from headwater.forwarders.http_responses import response_error
from headwater.forwarders.webhook.credentials import Credentials
from headwater.forwarders.webhook.http_client import HttpAnswer, HttpClient, is_private, shown_url
from headwater.forwarders.webhook.options import HttpOptions
from headwater.forwarders.webhook.signatures import signature_headers
from headwater.spi import CheckResult

_HIDDEN: Final = "…"
_SHORTEST_SECRET: Final = 6
"""Shorter pieces of a path, `hook` say, are words."""


class HttpEndpoint:
    """Posts messages with credentials. What an answer or an error says holds none of them."""

    def __init__(self, options: HttpOptions, *, clock: Callable[[], float] = time.time) -> None:
        """A ConfigurationError if a file is missing or wrong."""
        self._credentials = Credentials(options)
        self._client = HttpClient(options)
        self._clock = clock

    @property
    def shown(self) -> str:
        """What may be shown of the URL."""
        return shown_url(self._credentials.url())

    async def post(self, message_id: str, headers: Mapping[str, str], body: bytes) -> None:
        """Return when the target has the message.

        Raises a RefusedContentError if it never will accept it, a TransientError if it may do so later, and another
        TerminalError if somebody has to change something first.
        """
        url, own = self._credentials.url(), self._credentials.headers()
        signed = signature_headers(self._credentials.keys(), message_id, int(self._clock()), body)
        answer = await self._client.request("POST", url, {**headers, **own, **signed}, body)
        error = _answer_error(url, answer, own.values())
        if error is not None:
            raise error

    async def ask(self, headers: Mapping[str, str]) -> HttpAnswer:
        """Return the answer to an OPTIONS request, which changes nothing."""
        url = self._credentials.url()
        return await self._client.request("OPTIONS", url, {**headers, **self._credentials.headers()})

    async def check(self, headers: Mapping[str, str]) -> tuple[list[CheckResult], HttpAnswer | None]:
        """Return whether it is there, and what it says of these credentials, without sending anything."""
        try:
            answer = await self.ask(headers)
        except HeadwaterError as e:
            return [CheckResult.error("server", str(e), "correct url, or start the server")], None
        results = [CheckResult.ok("server", f"{self.shown} answers"), _judge(answer.status)]
        if self._credentials.are_there and not is_private(self._credentials.url()):
            advice = "write https:// in url"
            results.append(CheckResult.warning("privacy", "a connection without TLS shows the secrets", advice))
        return results, answer

    async def close(self) -> None:
        await self._client.close()


def _answer_error(url: str, answer: HttpAnswer, secrets: Iterable[str]) -> HeadwaterError | None:
    if answer.status == 415:
        return TerminalError(f"{shown_url(url)} answers 415: it doesn't take this content; try another mode")
    body = answer.body
    for each in _secrets(url, secrets):
        body = body.replace(each, _HIDDEN)
    return response_error(shown_url(url), answer.status, retry_after=answer.headers.get("retry-after"), body=body)


def _secrets(url: str, values: Iterable[str]) -> Iterator[str]:
    """Yield what no text may repeat."""
    parts = urlsplit(url)
    yield url
    pieces = (f"{parts.path}?{parts.query}", parts.path, parts.query, *parts.path.split("/"))
    yield from (each for each in pieces if len(each) >= _SHORTEST_SECRET)
    for value in values:
        yield value
        yield value.removeprefix("Bearer ")


def _judge(status: int) -> CheckResult:
    if status in {401, 403, 407}:
        return CheckResult.error("rights", f"it answers {status}", "give one that may write, by token.file")
    if 300 <= status < 400:
        return CheckResult.error("rights", f"it answers {status}, a redirect", "write where it leads to as url")
    if status in {404, 410}:
        return CheckResult.warning("rights", f"it answers {status} to a question", "look whether url is right")
    return CheckResult.ok("rights", "it lets us in; whether we may write shows a message")
