"""An HTTP client for messages that hold secrets: no redirects, no cookies, no log of URLs, answers of bounded size.

It uses httpx's transport without its client, which writes each URL to the log, and Slack's URLs are secrets.

One place that requests go to, with what proves who sends them, and what its answers mean.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import httpx

from headwater.errors import ConfigurationError, HeadwaterError, TerminalError, TransientError
from headwater.events.redaction import redact
from headwater.forwarders.http_delivery import BusyTargetError, response_error
from headwater.forwarders.webhook.credentials import Credentials, signature_headers
from headwater.forwarders.webhook.options import HttpOptions
from headwater.spi import CheckResult

_MOST_BYTES: Final = 16 << 10
"""Of an answer. Who answers more loses the connection, not the request."""
_AGENT: Final = {"user-agent": "headwater", "accept": "application/json, text/plain"}
_NO_TIMEOUT: Final = {"timeout": httpx.Timeout(None).as_dict()}
"""One time-out is for all of a request. A second one, at the same moment, would leave its connection open."""
_LOOPBACK: Final = {"localhost", "127.0.0.1", "::1"}


@dataclass(frozen=True)
class HttpAnswer:
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    body: str
    """At most its first 16 KiB."""


class HttpClient:
    """Sends requests to one place, from one event loop."""

    def __init__(self, options: HttpOptions) -> None:
        self._timeout = options.request_timeout
        self._transport = httpx.AsyncHTTPTransport(
            verify=_tls(options),
            limits=httpx.Limits(max_connections=64, max_keepalive_connections=64, keepalive_expiry=30),
            proxy=None if options.proxy is None else httpx.Proxy(options.proxy),
        )

    async def request(self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"") -> HttpAnswer:
        """Return the answer, whatever its status. A TransientError or TerminalError if there is none."""
        try:
            return await asyncio.wait_for(self._request(method, url, headers, body), self._timeout)
        except asyncio.TimeoutError:
            raise TransientError(f"{shown_url(url)} gave no answer within {self._timeout:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError) as e:
            raise _error(shown_url(url), e) from None

    async def _request(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        request = httpx.Request(method, url, headers={**_AGENT, **headers}, content=body, extensions=_NO_TIMEOUT)
        response = await self._transport.handle_async_request(request)
        try:
            text = b""
            async for piece in response.aiter_raw():
                text += piece
                if len(text) > _MOST_BYTES:
                    break
        finally:
            await response.aclose()
        return HttpAnswer(response.status_code, response.headers, text[:_MOST_BYTES].decode("utf-8", "replace"))

    async def close(self) -> None:
        await self._transport.aclose()


def shown_url(url: str) -> str:
    """Return what may be shown of a URL: its server. A path can be a secret."""
    parts = urlsplit(url)
    host = parts.hostname or "?"
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")


def is_private(url: str) -> bool:
    """Return whether nobody on the network can read what is sent there."""
    return url.startswith("https://") or urlsplit(url).hostname in _LOOPBACK


def _tls(options: HttpOptions) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=options.ca)
    except (OSError, ssl.SSLError) as e:
        raise ConfigurationError(f"ca {options.ca} can't be used: {_words(e)}") from None
    if options.client_certificate is not None:
        try:
            context.load_cert_chain(options.client_certificate, options.client_key, password=lambda: "")
        except (OSError, ssl.SSLError) as e:
            files = " and ".join(each for each in (options.client_certificate, options.client_key) if each)
            raise ConfigurationError(f"client.certificate {files} can't be used: {_words(e)}") from None
    return context


def _error(shown: str, error: Exception) -> HeadwaterError:
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    words = f"{shown} can't be reached: {redact(_words(cause or error))}"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return TerminalError(f"{words}; name the file of its authority's certificates as ca")
    if isinstance(cause, ssl.SSLError) and "certificate" in str(cause).lower():
        return TerminalError(f"{words}; name the file with the certificate that it asks for as client.certificate")
    if isinstance(error, (httpx.LocalProtocolError, httpx.UnsupportedProtocol, httpx.InvalidURL)):
        return TerminalError(words)
    return BusyTargetError(words)


def _words(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


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
    for secret in _secrets(url, secrets):
        body = body.replace(secret, _HIDDEN)
    return response_error(shown_url(url), answer.status, retry_after=answer.headers.get("retry-after"), body=body)


def _secrets(url: str, values: Iterable[str]) -> Iterator[str]:
    """Yield what no text may repeat."""
    parts = urlsplit(url)
    yield url
    pieces = (f"{parts.path}?{parts.query}", parts.path, parts.query, *parts.path.split("/"))
    yield from (piece for piece in pieces if len(piece) >= _SHORTEST_SECRET)
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
