"""Metrics over HTTP: each scrape on a thread of its own, so that one who doesn't read holds up nobody."""

from __future__ import annotations

import socket
import socketserver
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import make_wsgi_app
from prometheus_client.registry import CollectorRegistry

from headwater.listeners.threads import DaemonThread

_PATIENCE: Final = 10.0
"""Seconds that a client may take to ask, and again to read each piece."""
_POLL: Final = 0.1


class MetricsServer:
    """Serves from when it is made until `close`. An OSError says why it can't."""

    def __init__(self, registry: CollectorRegistry, host: str, port: int) -> None:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        self._server = _server_class(family)((str(address[0]), port), _Handler)
        self._server.set_app(make_wsgi_app(registry))
        self._host = f"[{host}]" if ":" in host else host
        self._thread = DaemonThread("headwater-metrics-http", lambda: self._server.serve_forever(_POLL))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://{self._host}:{self._server.server_port}/metrics"

    def close(self) -> None:
        """Nobody is served any more; who is being served is left alone."""
        self._server.shutdown()
        self._server.server_close()

    def forget(self) -> None:
        """In a forked child: the parent goes on serving, and the port is to be free when it ends."""
        self._server.socket.close()


class _Handler(WSGIRequestHandler):
    timeout = _PATIENCE

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as it is called there
        """A scrape is no news."""


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def server_bind(self) -> None:
        """Without asking for the host's name, which can take as long as a name server likes."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def handle_error(self, request: object, client_address: object) -> None:
        """One who went away in the middle is no news either."""


def _server_class(family: socket.AddressFamily) -> type[_Server]:
    return type("_FamilyServer", (_Server,), {"address_family": family})
