"""Messages arrive, or an error says that they didn't: over HTTP from servers that fail in all ways, and in files."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import threading
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import ConfigurationError, HeadwaterError, TerminalError, TransientError
from headwater.events import Event
from headwater.forwarders.api import ForwarderContext, RefusedEventsError
from headwater.forwarders.openlineage import OpenLineageForwarder
from headwater.spi import CheckStatus
from headwater.testing.examples import EXAMPLES
from tests.kit.forwarders.sending import batch, error_of
from tests.kit.forwarders.stage import cancelled_when
from tests.kit.openlineage_spec import problems_of

pytestmark = pytest.mark.slow

EVENTS = [event for event in EXAMPLES if event.kind in {"JobStarted", "Committed", "JobLineage", "DropTable"}]


@dataclass
class Server:
    """Answers as its script says, then 201; keeps what it accepted."""

    url: str
    script: list[tuple[int, dict[str, str], bytes] | str] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def server() -> Generator[Server]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None: ...

        def do_HEAD(self) -> None:
            self.do_POST()

        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            state.asked.append(f"{self.command} {self.path}")
            state.headers.append(dict(self.headers))
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            step = state.script.pop(0) if state.script else (201, {}, b"")
            if step == "hang":
                state.released.wait(60)
                self.close_connection = True
                return
            if step == "garbage":
                self.wfile.write(b"\0\1\2 this is no HTTP\r\n\r\n")
                self.close_connection = True
                return
            if step == "cut":
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            assert not isinstance(step, str)
            status, headers, answer = step
            if 200 <= status < 300 and body:
                text = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
                state.bodies.append(json.loads(text))
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(answer))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        state = Server(f"http://127.0.0.1:{http.server_address[1]}")
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        state.released.set()
        http.shutdown()
        thread.join()


def forwarder(**options: str) -> OpenLineageForwarder:
    return OpenLineageForwarder(ForwarderContext("ol", {key.replace("_", "."): text for key, text in options.items()}))


def sent(target: OpenLineageForwarder, events: Sequence[Event] = EVENTS) -> HeadwaterError | None:
    return error_of(target, events)


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_every_message_arrives_in_order(server: Server, compression: str) -> None:
    assert sent(forwarder(url=server.url, api_key="k3y", header_X="1", compression=compression)) is None
    target = forwarder(url=server.url)
    assert server.bodies == [json.loads(text) for event in EVENTS for text in target.preview(event)]
    assert [fault for body in server.bodies for fault in problems_of(body)] == []
    assert set(server.asked) == {"POST /api/v1/lineage"}
    assert {(headers["Authorization"], headers["X"]) for headers in server.headers} == {("Bearer k3y", "1")}


@pytest.mark.parametrize(
    "step",
    [
        *[(status, {}, b"no") for status in (429, 500, 502, 503)],
        *["garbage", "cut", "hang"],
    ],
)
def test_a_server_that_fails_is_tried_again(server: Server, step: Any) -> None:
    """The messages before the failure are sent again, and are the same ones."""
    server.script = [(201, {}, b""), step]
    error = sent(forwarder(url=server.url, request_timeout="1 s" if step == "hang" else "60 s"))
    assert isinstance(error, TransientError)
    assert len(server.asked) == 2, "the client must not try again by itself"
    first = list(server.bodies)
    assert sent(forwarder(url=server.url)) is None
    assert server.bodies[1] == first[0]


def test_how_long_the_server_wants_to_be_left_alone(server: Server) -> None:
    server.script = [(429, {"Retry-After": "300"}, b"")]
    error = sent(forwarder(url=server.url))
    assert getattr(error, "retry_after", None) == 300.0


def test_a_server_that_is_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert isinstance(sent(forwarder(url=f"http://127.0.0.1:{port}")), TransientError)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_is_refused_is_named_and_the_rest_arrives(server: Server, status: int) -> None:
    server.script = [(201, {}, b""), (status, {}, b"a field is wrong")]
    error = sent(forwarder(url=server.url), EVENTS[:3])
    assert isinstance(error, RefusedEventsError)
    assert error.reasons.keys() == {1}
    assert "a field is wrong" in error.reasons[1]
    kept = [json.loads(text) for index in (0, 2) for text in forwarder(url=server.url).preview(EVENTS[index])]
    assert server.bodies == kept


@pytest.mark.parametrize("status", [301, 302, 303, 307, 401, 403, 404])
def test_what_somebody_has_to_change(server: Server, status: int) -> None:
    """The client follows 302 to a page with GET, gets 200, and would take the message for delivered."""
    server.script = [(status, {"Location": "/login"}, b"")]
    error = sent(forwarder(url=server.url))
    assert isinstance(error, TerminalError)
    assert not isinstance(error, RefusedEventsError)
    assert len(server.asked) == 1


def test_only_what_is_wanted_is_sent(server: Server) -> None:
    assert sent(forwarder(url=server.url, messages="run", engine_version="3.5.7")) is None
    assert server.bodies
    assert all("run" in body for body in server.bodies)
    assert {body["run"]["facets"]["processing_engine"]["version"] for body in server.bodies} == {"3.5.7"}


def test_a_call_that_was_given_up_sends_nothing_more(server: Server) -> None:
    server.script = ["hang"]

    async def go() -> None:
        target = forwarder(url=server.url)
        await cancelled_when(lambda: bool(server.asked), target.handle(batch(EVENTS)))
        server.released.set()
        await target.handle(batch(EVENTS[:1]))
        await target.close()

    asyncio.run(go())
    assert server.bodies == [json.loads(text) for text in forwarder(url=server.url).preview(EVENTS[0])]


def checked(target: OpenLineageForwarder) -> list[CheckStatus]:
    async def go() -> list[CheckStatus]:
        return [result.status async for result in target.check()]

    return asyncio.run(go())


@pytest.mark.parametrize(
    ("status", "rights"), [(405, CheckStatus.OK), (401, CheckStatus.ERROR), (302, CheckStatus.ERROR)]
)
def test_checking_writes_nothing(server: Server, status: int, rights: CheckStatus) -> None:
    server.script = [(status, {}, b"")]
    assert checked(forwarder(url=server.url)) == [CheckStatus.OK, rights]
    assert server.asked == ["HEAD /api/v1/lineage"]


def lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def test_a_file_gets_lines(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    target = forwarder(file=str(file))
    expected = [json.loads(text) for event in EVENTS for text in target.preview(event)]
    assert checked(target) == [CheckStatus.OK]
    assert not file.exists()
    assert sent(target) is None
    assert lines(file) == expected


def test_half_a_line_of_a_crash_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(b'{"whole": 1}\n{"half')
    assert sent(forwarder(file=str(file)), EVENTS[:1]) is None
    assert lines(file)[0] == {"whole": 1}
    assert len(lines(file)) == 2


def test_a_file_that_nobody_may_make(tmp_path: Path) -> None:
    target = forwarder(file=str(tmp_path / "nowhere/events.jsonl"))
    assert checked(target) == [CheckStatus.ERROR]
    assert isinstance(sent(target), TerminalError)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "one of url"),
        ({"url": "http://a", "file": "b"}, "one of url"),
        ({"url": "ftp://a"}, "http://"),
        ({"urll": "http://a"}, "urll"),
        ({"url": "http://a", "messages": "run,table"}, "messages"),
    ],
)
def test_options_that_are_wrong(options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        forwarder(**options)
