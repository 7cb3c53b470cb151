"""A schema registry for tests: the REST paths that Confluent's client uses, over real HTTP on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class SchemaRegistry:
    """What it holds, what it was asked, and how it is made to fail."""

    schemas: list[str] = field(default_factory=list)
    subjects: dict[str, list[int]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    authorization: list[str | None] = field(default_factory=list)
    failure: tuple[int, str] | None = None
    url: str = ""

    def register(self, subject: str, schema: str) -> int:
        if schema not in self.schemas:
            self.schemas.append(schema)
        number = self.schemas.index(schema) + 1
        self.subjects.setdefault(subject, []).append(number)
        return number

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if self.failure is not None:
            return self.failure[0], {"error_code": self.failure[0], "message": self.failure[1]}
        parts = path.partition("?")[0].strip("/").split("/")
        if method == "POST" and parts[0] == "subjects" and parts[2] == "versions":
            return 200, {"id": self.register(parts[1], body["schema"])}
        if method == "GET" and parts[:2] == ["schemas", "ids"]:
            number = int(parts[2])
            if number <= len(self.schemas):
                return 200, {"schema": self.schemas[number - 1]}
            return 404, {"error_code": 40403, "message": "Schema not found"}
        return 404, {"error_code": 404, "message": f"no such path: {path}"}


@contextmanager
def schema_registry() -> Generator[SchemaRegistry]:
    """A registry that runs as long as the block."""
    registry = SchemaRegistry()

    class Handler(BaseHTTPRequestHandler):
        def _reply(self, method: str) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            registry.requests.append(f"{method} {self.path}")
            registry.authorization.append(self.headers.get("Authorization"))
            status, answer = registry.answer(method, self.path, body)
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            self._reply("GET")

        def do_POST(self) -> None:
            self._reply("POST")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
            """Silent: the tests look at `requests`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
