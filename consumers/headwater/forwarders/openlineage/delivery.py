"""Brings messages to an HTTP server or into a file, and raises an error unless they have arrived.

HTTP is the client's own transport: it raises what the server answers. Its retries are switched off, because those of
the forwarder keep the order and tell what they wait for, and so is following redirects. The client's file transport
isn't used: it never forces what it wrote to the disk, and leaves half a line where the disk is full.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urljoin

import requests
from openlineage.client.serde import Serde
from openlineage.client.transport.http import (
    ApiKeyTokenProvider,
    HttpCompression,
    HttpConfig,
    HttpTransport,
    TokenProvider,
)

from headwater.errors import HeadwaterError, TerminalError, TransientError
from headwater.events.redaction import redact
from headwater.forwarders.http_delivery import keep_authorization, response_error
from headwater.forwarders.openlineage.mapping import OpenLineageEvent
from headwater.forwarders.openlineage.options import OpenLineageOptions
from headwater.forwarders.secret_filter import SecretFilter
from headwater.spi import CheckResult

_NO_RETRIES: Final = {"total": 0, "read": 0, "connect": 0, "status_forcelist": []}
_LAST_LINE: Final = 1 << 20
_LONGEST_BODY: Final = 64 << 10


class Target(Protocol):
    """Where messages go."""

    def send(self, message: OpenLineageEvent) -> None:
        """Send one. A RefusedContentError says that it never will be accepted."""
        ...

    def finish(self) -> None:
        """Return when everything that was sent has arrived, else raise an error."""
        ...

    def check(self) -> Iterator[CheckResult]:
        """Check the target without writing to it."""
        ...

    def close(self) -> None: ...


class HttpTarget:
    """An HTTP server, Marquez say."""

    def __init__(self, url: str, options: OpenLineageOptions) -> None:
        session = requests.Session()
        session.max_redirects = 0
        self._session = session
        self._timeout = options.request_timeout
        self._headers = dict(options.header)
        self._tokens = ApiKeyTokenProvider({"apiKey": options.api_key}) if options.api_key else TokenProvider({})
        self._verify: str | bool = options.ca or True
        self._place = urljoin(url, options.endpoint)
        self._shown = str(redact(self._place))
        self._secrets = SecretFilter([options.api_key, *self._headers.values()])
        if options.api_key or any(name.lower() == "authorization" for name in self._headers):
            session.auth = keep_authorization
        self._transport = HttpTransport(
            HttpConfig(
                url=url,
                endpoint=options.endpoint,
                timeout=options.request_timeout,
                verify=self._verify,  # type: ignore[arg-type]
                auth=self._tokens,
                compression=HttpCompression.GZIP if options.compression == "gzip" else None,
                custom_headers=self._headers,
                retry=_NO_RETRIES,
                session=session,
            )
        )

    def send(self, message: OpenLineageEvent) -> None:
        with self._secrets.hidden():
            try:
                response = self._transport.emit(message)
            except requests.RequestException as e:
                raise (self._refusal(e.response) if e.response is not None else None) or self._error(e) from e
            error = self._refusal(response)
            if error is not None:
                raise error

    def _refusal(self, response: requests.Response) -> HeadwaterError | None:
        retry_after, body = response.headers.get("Retry-After"), self._secrets.hide(response.text[:_LONGEST_BODY])
        return response_error(self._shown, response.status_code, retry_after=retry_after, body=body)

    def _error(self, error: requests.RequestException) -> HeadwaterError:
        words = f"{self._shown} can't be reached: {redact(f'{type(error).__name__}: {error}')}"
        if isinstance(error, requests.exceptions.SSLError):
            return TerminalError(f"{words}; name the file of its authority's certificates as ca")
        if isinstance(error, (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)):
            return TransientError(words)
        return TerminalError(words)

    def finish(self) -> None:
        """Each message was answered already."""

    def check(self) -> Iterator[CheckResult]:
        """A HEAD asks whether anybody is there, and whether the credentials are known."""
        bearer = self._tokens.get_bearer()
        headers = {**({"Authorization": bearer} if bearer else {}), **self._headers}
        try:
            response = self._session.head(
                self._place, headers=headers, timeout=self._timeout, verify=self._verify, allow_redirects=False
            )
        except requests.RequestException as e:
            words = self._secrets.hide(str(self._error(e)))
            yield CheckResult.error("server", words, "correct url, or start the server")
            return
        yield CheckResult.ok("server", f"{self._shown} answers")
        yield self._judge(response.status_code)

    def _judge(self, status: int) -> CheckResult:
        if status in {401, 403, 407}:
            return CheckResult.error("rights", f"it answers {status}", "give one that may write, as api.key")
        if 300 <= status < 400:
            return CheckResult.error("rights", f"it answers {status}, a redirect", "write where it leads to as url")
        if status == 404:
            return CheckResult.warning("rights", "it answers 404 to a question", "look whether endpoint is right")
        return CheckResult.ok("rights", "it lets us in; whether we may write shows a message")

    def close(self) -> None:
        self._transport.close()


class FileTarget:
    """A file of JSON lines. What is in it stays; a line that a crash cut short is removed."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._lines: list[bytes] = []

    def send(self, message: OpenLineageEvent) -> None:
        self._lines.append(Serde.to_json(message).encode() + b"\n")

    def finish(self) -> None:
        """Write the lines, all or none, and force them to the disk."""
        lines, self._lines = self._lines, []
        if not lines:
            return
        try:
            with self._path.open("ab+") as file:
                end = _end_of_last_line(file.seek(0, os.SEEK_END), file.fileno())
                os.ftruncate(file.fileno(), end)
                try:
                    file.write(b"".join(lines))
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    os.ftruncate(file.fileno(), end)
                    raise
        except (PermissionError, FileNotFoundError, IsADirectoryError, NotADirectoryError) as e:
            raise TerminalError(f"{self._path} can't be written to: {e.strerror}; correct file, or its rights") from e
        except OSError as e:
            raise TransientError(f"{self._path} can't be written to: {e.strerror}") from e

    def check(self) -> Iterator[CheckResult]:
        place = self._path if self._path.exists() else self._path.parent
        if os.access(place, os.W_OK) and not self._path.is_dir():
            yield CheckResult.ok("file", f"{self._path} can be written to")
        else:
            yield CheckResult.error("file", f"{self._path} can't be written to", "correct file, or its rights")

    def close(self) -> None:
        """The file is open only while something is written."""


def _end_of_last_line(size: int, descriptor: int) -> int:
    """Where the last whole line ends; a file without one in its last MiB is left as it is."""
    begin = max(0, size - _LAST_LINE)
    tail = os.pread(descriptor, size - begin, begin)
    end = tail.rfind(b"\n") + 1
    return begin + end if end or begin == 0 else size
