"""Serves `/live`, `/ready` and `/metrics` over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Protocol

from typing_extensions import Self

from headwater.errors import ConfigurationError

_TEXT: Final = "text/plain; charset=utf-8"
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS: Final = 5.0


class HealthMetrics(Protocol):
    """What the server is asked for."""

    @property
    def is_alive(self) -> bool: ...

    @property
    def is_ready(self) -> bool: ...

    @property
    def fault(self) -> str | None:
        """Why it isn't ready, if that is known."""
        ...

    def render(self) -> Iterator[str]:
        """Yield lines in Prometheus' text format."""
        ...


class HealthServer:
    """Serves on a thread while its `with` block runs."""

    def __init__(self, metrics: HealthMetrics, host: str, port: int) -> None:
        try:
            self._server = ThreadingHTTPServer((host, port), _handler(metrics))
        except OSError as e:
            raise ConfigurationError(f"{host}:{port} can't be served ({e.strerror}): free it, or give another") from e
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="headwater-health", daemon=True)

    @property
    def port(self) -> int:
        return self._server.server_port

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join(_SECONDS)
        self._server.server_close()


def _handler(metrics: HealthMetrics) -> type[BaseHTTPRequestHandler]:
    class HealthHandler(BaseHTTPRequestHandler):
        timeout = _SECONDS

        def do_GET(self) -> None:
            status, kind, text = _answer(metrics, self.path)
            data = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Probes come every few seconds."""

    return HealthHandler


def _answer(metrics: HealthMetrics, path: str) -> tuple[HTTPStatus, str, str]:
    if path == "/metrics":
        return HTTPStatus.OK, _METRICS, "\n".join([*metrics.render(), ""])
    if path == "/live":
        return _response(metrics.is_alive, "alive", "its loop hangs")
    if path == "/ready":
        return _response(metrics.is_ready, "ready", metrics.fault or "not yet")
    return HTTPStatus.NOT_FOUND, _TEXT, "there is /live, /ready and /metrics\n"


def _response(is_well: bool, well: str, ill: str) -> tuple[HTTPStatus, str, str]:
    status = HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE
    return status, _TEXT, f"{well if is_well else ill}\n"
