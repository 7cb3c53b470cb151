"""Reads events from files, directories and URLs: a document each line, one document, or a list of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

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
        found = _parsed(text)
        if found is None:
            for number, line in enumerate(text.splitlines(), 1):
                if line.strip():
                    yield _parsed_line(name, number, line)
        else:
            yield from found if isinstance(found, list) else [found]


def _parsed(text: str) -> object:
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
