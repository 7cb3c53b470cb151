"""An HTTP server on loopback that keeps what it is sent, and fails as a test says: it hangs, answers with errors or
garbage, closes connections, and restarts on its port.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from tests.kit.waiting import attempts

GARBAGE: Final = b"\x00\xffHTTP/9 what is this\r\n\r\n"


@dataclass(frozen=True)
class Fault:
    """What happens to a request in place of an answer of 200."""

    status: int = 0
    """The answer; 0 closes the connection without one."""
    headers: tuple[tuple[str, str], ...] = ()
    hangs: bool = False
    is_garbage: bool = False
    keeps: bool = False
    """Whether the server keeps what was sent, although its answer is an error: the answer was lost."""


Judge = Callable[[bytes], "Fault | None"]


@dataclass
class HttpTarget:
    """What it keeps, and how it fails."""

    judge: Judge = lambda _: None
    """Returns the fault for a request, by its body."""
    received: list[bytes] = field(default_factory=list)
    requests: int = 0
    port: int = 0
    _released: threading.Event = field(default_factory=threading.Event)
    _server: ThreadingHTTPServer | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        for _ in attempts("the port to be free", 30.0, 0.05):
            with suppress(OSError):
                self._server = _Server(("127.0.0.1", self.port), _handler(self))
                break
        assert self._server is not None
        self.port = self._server.server_port
        self._released = threading.Event()
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        self._released.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    @contextmanager
    def away(self) -> Generator[None]:
        """Nobody listens on the port inside it."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    @contextmanager
    def failing(self, judge: Judge) -> Generator[None]:
        before, self.judge = self.judge, judge
        try:
            yield
        finally:
            self.judge = before
            self._released.set()
            self._released = threading.Event()

    def take(self, body: bytes) -> Fault | None:
        """Keep a request, unless it meets a fault; return that."""
        with self._lock:
            self.requests += 1
            fault = self.judge(body)
            if fault is None or fault.keeps:
                self.received.append(body)
        if fault is not None and fault.hangs:
            self._released.wait(120)
        return fault


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is no fault of the test."""


def _handler(target: HttpTarget) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            if len(body) < length:  # its client was killed in the middle
                self.close_connection = True
                return
            fault = target.take(body)
            if fault is not None and fault.is_garbage:
                self.wfile.write(GARBAGE)
            if fault is not None and (fault.is_garbage or not fault.status):
                self.close_connection = True
                return
            self.send_response(200 if fault is None else fault.status)
            for name, value in () if fault is None else fault.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the class has it
            """The tests say what matters."""

    return Handler


@contextmanager
def http_target() -> Generator[HttpTarget]:
    """A server on a free port of this machine, until the block ends."""
    target = HttpTarget()
    target.start()
    try:
        yield target
    finally:
        target.stop()
