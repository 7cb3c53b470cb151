"""An HTTP server that takes OpenLineage events, as Marquez does, and writes each as a line of a file."""

from __future__ import annotations

import gzip
import json
import threading
import zlib
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from typing_extensions import Self

from headwater.errors import ConfigurationError

_SECONDS: Final = 30.0
_LARGEST: Final = 64 << 20


class EventCollector:
    """Takes what is posted to any path while its `with` block runs. An event is in the file when it is answered."""

    def __init__(self, host: str, port: int, file: Path) -> None:
        try:
            self._file = file.open("a", encoding="utf-8")
        except OSError as e:
            raise ConfigurationError(f"{file} can't be written ({e.strerror}): name another file by --to") from e
        try:
            self._server = ThreadingHTTPServer((host, port), _handler(self))
        except (OSError, OverflowError) as e:
            self._file.close()
            raise ConfigurationError(f"{host}:{port} can't be served ({e}): free it, or name another one") from e
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="headwater-collector", daemon=True)
        self._lock = threading.Lock()
        self.count = 0

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


def _handler(collector: EventCollector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _SECONDS
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if not 0 < length <= _LARGEST:
                self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE if length else HTTPStatus.LENGTH_REQUIRED)
                return
            try:
                collector.add(self._document(self.rfile.read(length)))
            except (ValueError, OSError, zlib.error):
                self._answer(HTTPStatus.BAD_REQUEST)
            else:
                self._answer(HTTPStatus.CREATED)

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

    return Handler
