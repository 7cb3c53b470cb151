"""A schema registry for tests: the part of the REST interface of Confluent's that producers and readers of Avro need,
over real HTTP on loopback, or as a program in a container. tests/contract/test_registry_server.py holds it to what that
interface's reference says.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import unquote

from fastavro import parse_schema
from fastavro.schema import SchemaParseException, UnknownType

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
LEVELS: Final = ("NONE", "BACKWARD", "FORWARD", "FULL")
Answer = tuple[int, Any]


class RefusedError(Exception):
    """An answer that isn't 200."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.answer: Answer = status, {"error_code": code, "message": message}


NO_SUCH_PATH: Final = RefusedError(404, 404, "HTTP 404 Not Found")


@dataclass
class SchemaRegistry:
    """What it holds, what it was asked, and how it is made to fail."""

    schemas: list[str] = field(default_factory=list)
    subjects: dict[str, list[int]] = field(default_factory=dict)
    """The ids of each subject's schemas, in the order of their versions."""
    levels: dict[str, str] = field(default_factory=dict)
    """By subject; of all that have none of their own under the empty name."""
    requests: list[str] = field(default_factory=list)
    authorization: list[str | None] = field(default_factory=list)
    failure: tuple[int, str] | None = None
    url: str = ""

    def register(self, subject: str, schema: str) -> int:
        """Return the schema's id, the same one in all subjects; where it is new to one, it is the next version."""
        text = canonical(schema)
        mine = self.subjects.get(subject, [])
        if text not in (self.schemas[each - 1] for each in mine):
            if not self.is_compatible(subject, text, [self.schemas[each - 1] for each in mine[-1:]]):
                raise RefusedError(
                    409, 409, f"Schema being registered is incompatible with an earlier one of {subject}"
                )
            if text not in self.schemas:
                self.schemas.append(text)
            self.subjects.setdefault(subject, []).append(self.schemas.index(text) + 1)
        return self.schemas.index(text) + 1

    def level_of(self, subject: str) -> str:
        return self.levels.get(subject, self.levels.get("", "BACKWARD"))

    def is_compatible(self, subject: str, new: str, others: list[str]) -> bool:
        level = self.level_of(subject)
        for old in others:
            if level in {"BACKWARD", "FULL"} and not can_read(json.loads(new), json.loads(old)):
                return False
            if level in {"FORWARD", "FULL"} and not can_read(json.loads(old), json.loads(new)):
                return False
        return True

    def answer(self, method: str, path: str, body: Any) -> Answer:
        if self.failure is not None:
            return self.failure[0], {"error_code": self.failure[0], "message": self.failure[1]}
        resource, *parts = [unquote(each) for each in path.partition("?")[0].strip("/").split("/")]
        resources = {"subjects": self._subjects, "schemas": self._schemas, "config": self._config}
        try:
            return 200, resources.get(resource, self._compatibility)(method, parts, body)
        except RefusedError as e:
            return e.answer

    def _subjects(self, method: str, parts: list[str], body: Any) -> Any:
        match method, parts:
            case "GET", []:
                return sorted(self.subjects)
            case "POST", [subject, "versions"]:
                return {"id": self.register(subject, body["schema"])}
            case "POST", [subject]:
                return self._version(subject, self._version_of(subject, body["schema"]))
            case "GET", [subject, "versions"]:
                return list(range(1, len(self._ids(subject)) + 1))
            case "GET", [subject, "versions", version]:
                return self._version(subject, version)
        raise NO_SUCH_PATH

    def _schemas(self, method: str, parts: list[str], _: Any) -> Any:
        match method, parts:
            case "GET", ["ids", number]:
                return {"schema": self._schema(number)}
            case "GET", ["ids", number, "versions"]:
                self._schema(number)
                places = ((subject, ids) for subject, ids in self.subjects.items() if int(number) in ids)
                return [{"subject": subject, "version": ids.index(int(number)) + 1} for subject, ids in places]
        raise NO_SUCH_PATH

    def _config(self, method: str, parts: list[str], body: Any) -> Any:
        subject = "".join(parts)
        if method == "PUT":
            if body.get("compatibility") not in LEVELS:
                raise RefusedError(422, 42203, "Invalid compatibility level")
            self.levels[subject] = body["compatibility"]
            return {"compatibility": body["compatibility"]}
        if subject and subject not in self.levels:
            raise RefusedError(404, 40408, f"Subject '{subject}' does not have subject-level compatibility configured")
        return {"compatibilityLevel": self.level_of(subject)}

    def _compatibility(self, method: str, parts: list[str], body: Any) -> Any:
        match method, parts:
            case "POST", ["subjects", subject, "versions", version]:
                other = self._version(subject, version)["schema"]
                return {"is_compatible": self.is_compatible(subject, canonical(body["schema"]), [other])}
        raise NO_SUCH_PATH

    def _version_of(self, subject: str, schema: str) -> str:
        text, mine = canonical(schema), [self.schemas[each - 1] for each in self._ids(subject)]
        if text not in mine:
            raise RefusedError(404, 40403, "Schema not found")
        return str(mine.index(text) + 1)

    def _ids(self, subject: str) -> list[int]:
        if subject not in self.subjects:
            raise RefusedError(404, 40401, f"Subject '{subject}' not found.")
        return self.subjects[subject]

    def _schema(self, number: str) -> str:
        if not number.isdecimal() or not 0 < int(number) <= len(self.schemas):
            raise RefusedError(404, 40403, "Schema not found")
        return self.schemas[int(number) - 1]

    def _version(self, subject: str, version: str) -> dict[str, Any]:
        ids = self._ids(subject)
        number = len(ids) if version in {"latest", "-1"} else int(version) if version.isdecimal() else 0
        if number < 1:
            raise RefusedError(422, 42202, f"The specified version '{version}' is not a valid version id")
        if number > len(ids):
            raise RefusedError(404, 40402, f"Version {version} not found.")
        return {
            "subject": subject,
            "version": number,
            "id": ids[number - 1],
            "schema": self.schemas[ids[number - 1] - 1],
        }


def canonical(schema: str) -> str:
    """Two texts of one schema, laid out in two ways, have one id."""
    try:
        parsed = json.loads(schema)
        parse_schema(json.loads(schema))
    except (ValueError, SchemaParseException, UnknownType, KeyError, TypeError) as e:
        raise RefusedError(422, 42201, f"Invalid schema: {e}") from e
    return json.dumps(parsed, separators=(",", ":"), ensure_ascii=False)


_WIDER: Final = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}


def can_read(reader: Any, writer: Any) -> bool:
    """Whether data that was written with one schema is read with the other, by Avro's rules of schema resolution."""
    return _Resolution().holds(reader, writer)


class _Resolution:
    def __init__(self) -> None:
        self._readers: dict[str, Any] = {}
        self._writers: dict[str, Any] = {}

    def holds(self, reader: Any, writer: Any) -> bool:
        reader, writer = self._named(reader, self._readers), self._named(writer, self._writers)
        if isinstance(writer, list):
            return all(self.holds(reader, each) for each in writer)
        if isinstance(reader, list):
            return any(self.holds(each, writer) for each in reader)
        kind, other = _kind(reader), _kind(writer)
        return self._same_kind_holds(kind, reader, writer) if kind == other else kind in _WIDER.get(other, set())

    def _same_kind_holds(self, kind: str, reader: Any, writer: Any) -> bool:
        if kind in {"record", "enum", "fixed"} and _short_name(reader) != _short_name(writer):
            return False
        by_kind: dict[str, Callable[[], bool]] = {
            "record": lambda: self._fields_hold(reader, writer),
            "enum": lambda: {*writer["symbols"]} <= {*reader["symbols"]} or "default" in reader,
            "fixed": lambda: bool(reader["size"] == writer["size"]),
            "array": lambda: self.holds(reader["items"], writer["items"]),
            "map": lambda: self.holds(reader["values"], writer["values"]),
        }
        return by_kind.get(kind, lambda: True)()

    def _fields_hold(self, reader: Any, writer: Any) -> bool:
        there = {each["name"]: each for each in writer["fields"]}
        return all(
            self.holds(each["type"], there[each["name"]]["type"]) if each["name"] in there else "default" in each
            for each in reader["fields"]
        )

    def _named(self, schema: Any, known: dict[str, Any]) -> Any:
        if isinstance(schema, dict) and "name" in schema:
            known[schema["name"].rpartition(".")[2]] = schema
        return known.get(schema.rpartition(".")[2], schema) if isinstance(schema, str) else schema


def _short_name(schema: Any) -> str:
    return str(schema["name"]).rpartition(".")[2]


def _kind(schema: Any) -> str:
    return str(schema if isinstance(schema, str) else schema["type"])


@contextmanager
def schema_registry(host: str = "127.0.0.1", port: int = 0) -> Generator[SchemaRegistry]:
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
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            self._reply("GET")

        def do_POST(self) -> None:
            self._reply("POST")

        def do_PUT(self) -> None:
            self._reply("PUT")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
            """Silent: the tests look at `requests`."""

    server = ThreadingHTTPServer((host, port), Handler)
    registry.url = f"http://{host}:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    with schema_registry("0.0.0.0", 8081):  # noqa: S104 - of a container, which publishes the port on loopback
        threading.Event().wait()
