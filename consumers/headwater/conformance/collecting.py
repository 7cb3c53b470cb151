"""An HTTP server that takes OpenLineage events, as Marquez does, and writes each as a line of a file."""

from __future__ import annotations

import gzip
import json
import threading
import zlib
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from typing_extensions import Self

from headwater.errors import ConfigurationError

_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.05
_LARGEST: Final = 64 << 20
_LONGEST_LINE: Final = 4096


class EventCollector:
    """Takes what is posted to any path while its `with` block runs. An event is in the file when it is answered."""

    def __init__(self, host: str, port: int, file: Path) -> None:
        try:
            self._file = file.open("a", encoding="utf-8")
        except OSError as e:
            raise ConfigurationError(f"{file} can't be written ({e.strerror}): name another file by --to") from e
        try:
            self._server = ThreadingHTTPServer((host, port), self._handler())
        except (OSError, OverflowError) as e:
            self._file.close()
            raise ConfigurationError(f"{host}:{port} can't be served ({e}): free it, or name another one") from e
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_SECONDS,), name="headwater-collector", daemon=True
        )
        self._lock = threading.Lock()
        self.count = 0

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        class CollectingHandler(_EventHandler):
            collector = self

        return CollectingHandler

    @property
    def port(self) -> int:
        """The port that is served."""
        return self._server.server_port

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join(_SECONDS)
        self._server.server_close()
        self._file.close()

    def add(self, document: object) -> None:
        """Write one event, or several."""
        events = document if isinstance(document, list) else [document]
        with self._lock:
            self._file.writelines(f"{json.dumps(event)}\n" for event in events)
            self._file.flush()
            self.count += len(events)


class _RefusedRequestError(Exception):
    """A request that isn't read to its end."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


class _EventHandler(BaseHTTPRequestHandler):
    collector: EventCollector
    """Set by the class that each collector derives."""
    timeout = _SECONDS
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        try:
            self.collector.add(self._document(self._body()))
        except _RefusedRequestError as e:
            self._answer(e.status)
        except (ValueError, OSError, EOFError, zlib.error):
            self._answer(HTTPStatus.BAD_REQUEST)
        else:
            self._answer(HTTPStatus.CREATED)

    def _body(self) -> bytes:
        """Clients that compress don't know the length beforehand, and send chunks."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return b"".join(self._chunks())
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise _RefusedRequestError(HTTPStatus.LENGTH_REQUIRED)
        return self._read(int(length))

    def _chunks(self) -> Iterator[bytes]:
        left = _LARGEST
        while length := int(self.rfile.readline(_LONGEST_LINE).partition(b";")[0], 16):
            left -= length
            yield self._read(length, left)
            self.rfile.readline(_LONGEST_LINE)
        while self.rfile.readline(_LONGEST_LINE).strip():  # trailers
            pass

    def _read(self, length: int, left: int = 0) -> bytes:
        if length > _LARGEST or left < 0:
            raise _RefusedRequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return self.rfile.read(length)

    def _document(self, data: bytes) -> object:
        is_gzip = self.headers.get("Content-Encoding", "").lower() == "gzip"
        return json.loads(gzip.decompress(data) if is_gzip else data)

    def _answer(self, status: HTTPStatus) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        if status is not HTTPStatus.CREATED:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Requests aren't logged."""
