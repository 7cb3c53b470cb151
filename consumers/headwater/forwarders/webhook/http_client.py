"""An HTTP client for messages that hold secrets: no redirects, no cookies, no log of URLs, answers of bounded size.

It uses httpx's transport without its client, which writes each URL to the log, and Slack's URLs are secrets.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import httpx

from headwater.errors import ConfigurationError, HeadwaterError, TerminalError, TransientError
from headwater.events.redaction import redact
from headwater.forwarders.http_responses import BusyTargetError
from headwater.forwarders.webhook.options import HttpOptions

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
