"""What the suite takes in and hands out: events from a server of its own or from files, and scripts for its user.

The HTTP server takes OpenLineage events, as Marquez does, and writes each as a line of a file. Files, directories and
URLs are read as a document each line, one document, or a list of them.
"""

from __future__ import annotations

import gzip
import json
import threading
import zlib
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any, Final
from urllib.error import URLError
from urllib.request import urlopen

from typing_extensions import Self

from headwater.conformance.model import load_scenarios
from headwater.conformance.reported import ReportedEvent, read_event
from headwater.errors import ConfigurationError, TransientError

_SUFFIXES: Final = {".json", ".ndjson", ".jsonl"}
_SECONDS: Final = 30.0


def read_events(places: Iterable[str]) -> tuple[list[ReportedEvent], int]:
    """Return the events of files, directories or URLs, and how many documents there are that aren't events."""
    events: list[ReportedEvent] = []
    others = 0
    for place in places:
        for document in _documents(place):
            event = read_event(document)
            if event is None:
                others += 1
            else:
                events.append(event)
    return events, others


def _documents(place: str) -> Iterator[object]:
    for name in _names(place):
        text = _download(name) if _is_url(name) else _text(Path(name))
        found = _parse(text)
        if found is None:
            for number, line in enumerate(text.splitlines(), 1):
                if line.strip():
                    yield _parsed_line(name, number, line)
        else:
            yield from found if isinstance(found, list) else [found]


def _parse(text: str) -> object:
    """Return the one document that the text is; None where it is several, or none."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def _parsed_line(name: str, number: int, line: str) -> object:
    try:
        return json.loads(line)
    except ValueError as e:
        raise ConfigurationError(
            f"line {number} of {name} is no JSON ({e}): give a file with an event on each line"
        ) from e


def _is_url(place: str) -> bool:
    return place.startswith(("http://", "https://"))


def _names(place: str) -> list[str]:
    """Return the files that a place stands for, or the URL."""
    path = Path(place)
    if _is_url(place):
        return [place]
    if not path.exists():
        raise ConfigurationError(f"{place} isn't there: name a file or a directory of OpenLineage events, or a URL")
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.suffix in _SUFFIXES)
    if not files:
        raise ConfigurationError(f"there are no files *.json, *.jsonl or *.ndjson in {place}")
    return list(map(str, files))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise ConfigurationError(f"{path} can't be read: {e}") from e


def _download(url: str) -> str:
    try:
        with urlopen(url, timeout=_SECONDS) as answer:  # noqa: S310 - the scheme is looked at before
            return str(answer.read().decode("utf-8"))
    except (URLError, OSError, UnicodeDecodeError) as e:
        raise TransientError(
            f"{url} can't be read: {e}; to collect events over HTTP: headwater conformance listen"
        ) from e


RUNNER: Final = "run.py"
_SCRIPTS: Final = "scripts"


def script_text(scenario: str) -> str:
    """Return the script of a scenario."""
    return files("headwater.conformance").joinpath(_SCRIPTS).joinpath(f"{scenario}.py").read_text(encoding="utf-8")


def write_scripts(directory: Path) -> Path:
    """Write all scripts, and return the one that plays them."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise ConfigurationError(f"there is something in {directory} already: name a new directory")
        for name in (RUNNER.removesuffix(".py"), "scenario_run", *load_scenarios()):
            (directory / f"{name}.py").write_text(script_text(name), encoding="utf-8")
    except OSError as e:
        raise ConfigurationError(f"{directory} can't be written: {e.strerror}: name another directory") from e
    return directory / RUNNER


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
