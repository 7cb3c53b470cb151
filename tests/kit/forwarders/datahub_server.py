"""A metadata service of DataHub for tests: the part of its REST interface that proposals go to, over HTTP on loopback.

It stores aspects as the real one does: an upsert replaces, a creation is dropped where there is an aspect, a patch is
applied to a map in place of a list, missing levels are added and what isn't there is removed without an error, and
a time series has one entry for an entity, a time and a message id.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

TIME_SERIES: Final = {"operation", "dataProcessInstanceRunEvent"}
CONFIG: Final = {"noCode": "true", "versions": {"acryldata/datahub": {"version": "v1.4.0"}}, "patchCapable": True}


@dataclass
class Answer:
    """How a request is answered in place of what would be."""

    status: int = 200
    body: bytes = b'{"message": "so it was wanted"}'
    headers: dict[str, str] = field(default_factory=dict)
    hangs: bool = False
    stores: bool = False
    """Whether the proposals are stored although the answer is an error: the answer was lost."""


@dataclass
class DataHubServer:
    """What it stores, what it was asked, and how it is made to fail."""

    aspects: dict[tuple[str, str], Any] = field(default_factory=dict)
    entries: dict[tuple[str, str, int, str | None], Any] = field(default_factory=dict)
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    proposals: list[dict[str, Any]] = field(default_factory=list)
    answers: deque[Answer] = field(default_factory=deque)
    """The next requests get these."""
    refused: set[str] = field(default_factory=set)
    """Entities that no proposal may be about."""
    token: str | None = None
    url: str = ""
    asked: threading.Event = field(default_factory=threading.Event)
    """Set when the first request is there."""
    released: threading.Event = field(default_factory=threading.Event)
    """Answers that hang wait for it."""

    def answer(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        self.requests.append((method, path, headers))
        self.asked.set()
        prepared = self.answers.popleft() if self.answers else None
        if prepared is not None and not prepared.stores:
            if prepared.hangs:
                self.released.wait(60)
            return prepared
        if path == "/config":
            return Answer(body=json.dumps(CONFIG).encode())
        if self.token is not None and headers.get("Authorization") != f"Bearer {self.token}":
            return Answer(401, b'{"message": "Unauthorized"}')
        if path == "/api/graphql":
            return Answer(body=b'{"data": {"me": {"corpUser": {"username": "headwater"}}}}')
        if path != "/aspects?action=ingestProposalBatch":
            return Answer(404, b"<html>no</html>")
        answer = self._ingest(json.loads(body)["proposals"])
        return prepared or answer

    def _ingest(self, proposals: list[dict[str, Any]]) -> Answer:
        for proposal in proposals:
            if proposal["entityUrn"] in self.refused:
                return Answer(422, json.dumps({"message": f"invalid urn {proposal['entityUrn']}"}).encode())
        self.proposals += proposals
        stored = dict(self.aspects)
        for proposal in proposals:
            self._store(proposal, stored)
        return Answer(body=b'{"value": "success"}')

    def _store(self, proposal: dict[str, Any], stored: dict[tuple[str, str], Any]) -> None:
        """`stored` is what was there before the request: patches are applied to that."""
        key = (proposal["entityUrn"], proposal["aspectName"])
        value = json.loads(proposal["aspect"]["value"])
        if key[1] in TIME_SERIES:
            entity, aspect = key
            self.entries[entity, aspect, value["timestampMillis"], value.get("messageId")] = value
        elif proposal["changeType"] == "PATCH":
            operations = value if isinstance(value, list) else value["patch"]
            self.aspects[key] = patched(stored.get(key, {}), operations)
        elif proposal["changeType"] == "CREATE":
            assert proposal["headers"] == {"If-None-Match": "*"}
            self.aspects.setdefault(key, value)
        else:
            self.aspects[key] = value


def patched(document: Any, operations: list[dict[str, Any]]) -> Any:
    """Return the document after these operations of JSON Patch, with the service's leniency."""
    copy = json.loads(json.dumps(document))
    for operation in operations:
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        inside = copy
        for part in parents:
            inside = inside.setdefault(part, {})
        if operation["op"] == "remove":
            inside.pop(last, None)
        else:
            inside[last] = operation["value"]
    return copy


@contextmanager
def datahub_server() -> Generator[DataHubServer]:
    """A server on a free port of this machine, until the block ends."""
    state = DataHubServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = state.answer(self.command, self.path, body, dict(self.headers))
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def handle(self) -> None:
            try:
                super().handle()
            except ConnectionError:
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the class has it
            """The tests say what matters."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
