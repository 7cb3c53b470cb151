"""A receiver of webhooks for tests: it records what it accepts, and fails in every way a server can.

Messages are read by the rules of CloudEvents' HTTP binding, without our own code. `answers` says how the next requests
are answered; `chaos` lets it fail at random; `restart` drops all connections and comes back on the same port.
"""

from __future__ import annotations

import json
import random
import socket
import ssl
import struct
import threading
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import unquote

_LONGEST_HANG: Final = 30.0
_BATCH: Final = "application/cloudevents-batch+json"
_STRUCTURED: Final = "application/cloudevents+json"
FAULTS: Final = ("429", "500", "503", "garbage", "cut", "lost", "hang", "reset")


@dataclass
class WebhookAnswer:
    """How a request is answered in place of 204."""

    status: int = 204
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    fault: str = ""
    """`hang`: no answer; `garbage`: no HTTP; `cut`: the end in place of an answer; `reset`: a TCP reset."""
    stores: bool = False
    """Whether the message is accepted although the answer is no success: the answer is lost."""


@dataclass
class WebhookRequest:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    """By names in small letters."""
    body: bytes


@dataclass
class WebhookServer:
    """What was asked, what was accepted, and how it is made to fail."""

    url: str = ""
    requests: list[WebhookRequest] = field(default_factory=list)
    accepted: list[dict[str, Any]] = field(default_factory=list)
    """Each CloudEvent that was accepted, copies too, in their order: its attributes and `data`."""
    posts: list[WebhookRequest] = field(default_factory=list)
    """The requests that were accepted."""
    answers: deque[WebhookAnswer] = field(default_factory=deque)
    refused: set[str] = field(default_factory=set)
    """Ids of events that are answered with 400."""
    token: str | None = None
    consents_to: str | None = None
    """The answer to the question of the handshake."""
    rate: str | None = None
    chaos: random.Random | None = None
    fault_rate: float = 0.0
    asked: threading.Event = field(default_factory=threading.Event)
    """Set when the first request is there."""
    released: threading.Event = field(default_factory=threading.Event)
    """Requests that hang wait for it."""
    faults: list[str] = field(default_factory=list)
    """What happened by chance."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    _http: _Http | None = None

    def start(self) -> None:
        port = 0 if self._http is None else self._http.server_port
        self._http = _Http(("127.0.0.1", port), self)

    def stop(self) -> None:
        """Stop answering, and drop all connections."""
        assert self._http is not None
        self._http.stop()

    def restart(self) -> None:
        self.stop()
        self.start()

    def serve_tls(self, context: ssl.SSLContext) -> None:
        """Speak TLS from now on."""
        assert self._http is not None
        self._http.socket = context.wrap_socket(self._http.socket, server_side=True, do_handshake_on_connect=False)
        self.url = self.url.replace("http://127.0.0.1", "https://localhost")

    @property
    def port(self) -> int:
        assert self._http is not None
        return self._http.server_port

    def events(self) -> list[dict[str, Any]]:
        """Return the events as a receiver has them that keeps the first of each id."""
        return list({each["id"]: each for each in reversed(self.accepted)}.values())[::-1]

    def answer(self, request: WebhookRequest) -> WebhookAnswer:
        with self.lock:
            self.requests.append(request)
            self.asked.set()
            prepared = self.answers.popleft() if self.answers else self._by_chance()
            if prepared is not None and not prepared.stores:
                return prepared
            answer = self._accept(request)
            return prepared or answer

    def _by_chance(self) -> WebhookAnswer | None:
        if self.chaos is None or self.chaos.random() >= self.fault_rate:
            return None
        fault = self.chaos.choice(FAULTS)
        self.faults.append(fault)
        if fault.isdigit():
            return WebhookAnswer(int(fault), b"not now", {"Retry-After": "0"} if fault == "429" else {})
        return WebhookAnswer(fault="cut" if fault == "lost" else fault, stores=fault == "lost")

    def _accept(self, request: WebhookRequest) -> WebhookAnswer:
        if request.method == "OPTIONS":
            origin = {} if self.consents_to is None else {"WebHook-Allowed-Origin": self.consents_to}
            rate = {} if self.rate is None else {"WebHook-Allowed-Rate": self.rate}
            return WebhookAnswer(200, headers={"Allow": "POST", **origin, **rate})
        if self.token is not None and request.headers.get("authorization") != f"Bearer {self.token}":
            return WebhookAnswer(401, b"who are you?")
        events = read_events(request)
        refused = [each["id"] for each in events if each["id"] in self.refused]
        if refused:
            return WebhookAnswer(400, f"a field of {refused[0]} is wrong".encode())
        self.posts.append(request)
        self.accepted += events
        return WebhookAnswer()


def read_events(request: WebhookRequest) -> list[dict[str, Any]]:
    """Return the events of a request, by the content type that it names."""
    content_type = request.headers["content-type"].partition(";")[0]
    if content_type == _BATCH:
        found: list[dict[str, Any]] = json.loads(request.body)
        return found
    if content_type == _STRUCTURED:
        return [json.loads(request.body)]
    attributes = {name[3:]: unquote(value) for name, value in request.headers.items() if name.startswith("ce-")}
    return [{**attributes, "datacontenttype": content_type, "data": json.loads(request.body)}]


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], state: WebhookServer) -> None:
        self.open: set[socket.socket] = set()
        self.state = state
        super().__init__(address, _Handler)
        if not state.url:
            state.url = f"http://127.0.0.1:{self.server_port}/hook"
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()
        for each in list(self.open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections end in all ways here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http

    def setup(self) -> None:
        super().setup()
        self.server.open.add(self.connection)

    def finish(self) -> None:
        self.server.open.discard(self.connection)
        with suppress(OSError):
            super().finish()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.state.answer(WebhookRequest(self.command, self.path, headers, body))
        if answer.fault:
            self._fail(answer.fault)
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def do_OPTIONS(self) -> None:
        self.do_POST()

    def _fail(self, fault: str) -> None:
        self.close_connection = True
        if fault == "hang":
            self.server.state.released.wait(_LONGEST_HANG)
        elif fault == "garbage":
            self.wfile.write(b"\0\1\2 this is no HTTP\r\n\r\n")
        elif fault == "endless":
            self.wfile.write(b"HTTP/1.1 500 Endless\r\nTransfer-Encoding: chunked\r\n\r\n")
            with suppress(OSError):
                while not self.server.state.released.wait(0.001):
                    self.wfile.write(b"1000\r\n" + b"x" * 0x1000 + b"\r\n")
        elif fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the class has it
        """The tests say what matters."""


@contextmanager
def webhook_server() -> Generator[WebhookServer]:
    """A receiver on a free port of this machine, until the block ends."""
    state = WebhookServer()
    state.start()
    try:
        yield state
    finally:
        state.released.set()
        state.stop()
