"""docs/event-json.md shows what is written, and promises what holds. `python -m tests.unit.events.test_event_json_doc`
writes its examples anew."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

import pytest

from headwater.events.avro import Codec, DecodeError, UnknownEvent, released
from headwater.events.envelope import Event
from headwater.events.presentation import RecordOrigin, Undecodable, event_object, undecoded_object
from headwater.testing.examples import EXAMPLES
from headwater.testing.listeners import from_the_future, record

DOC: Final = Path(__file__).parents[3] / "docs/event-json.md"
BLOCK: Final = re.compile(r"^```json (\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMIT: Final = next(event for event in EXAMPLES if event.kind == "Committed")
ORIGIN: Final = RecordOrigin("partition-0000", 41, datetime(2026, 3, 1, 12, 0, 19, 250_000, timezone.utc))


def examples() -> dict[str, Mapping[str, Any]]:
    """What the blocks of the document show, by their names."""
    newer = from_the_future(record(1, EXAMPLES[11]))
    assert isinstance(newer.event, UnknownEvent)
    beside = {name: value.decode() for name, value in newer.headers}
    return {
        "committed": event_object(COMMIT),
        "unknown": undecoded_object(newer.event, replace(ORIGIN, headers=beside)),
        "undecodable": undecoded_object(undecodable(b"not an event"), ORIGIN),
    }


def undecodable(data: bytes) -> Undecodable:
    with pytest.raises(DecodeError) as caught:
        Codec().decode(data)
    return Undecodable(data, caught.value)


def test_the_document_shows_what_is_written() -> None:
    shown = {name: json.loads(block) for name, block in BLOCK.findall(DOC.read_text(encoding="utf-8"))}
    assert shown == examples()
    assert [list(block) for block in shown.values()] == [list(each) for each in examples().values()], "in this order"


def test_the_document_tells_the_whole_envelope() -> None:
    table = DOC.read_text(encoding="utf-8").partition("## The envelope")[2].partition("```")[0]
    named = re.findall(r"`(\w+)`", "\n".join(line.split("|")[1] for line in table.splitlines() if line[:1] == "|"))
    assert named == list(Event.model_fields)


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.kind)
def test_exactly_what_is_long_in_avro_is_text_in_json(event: Event) -> None:
    schema = json.loads(next(each for each in released() if each.kind == event.kind).text)
    seen = list(_integers(event_object(event), schema, dict(_named(schema))))
    assert all(type(value) is (str if avro == "long" else int) for avro, value in seen)
    assert {"int", "long"} == {avro for avro, _ in seen}


def _named(schema: Any) -> Iterator[tuple[str, Any]]:
    """The types that have a name, which others refer to."""
    if isinstance(schema, dict) and "name" in schema and "type" in schema:
        yield schema["name"], schema
    for each in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _named(each)


def _integers(value: Any, schema: Any, names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each integer with its type in the schema, by a walk over both."""
    if value is None:
        return
    if isinstance(schema, list):
        branches = [each for each in schema if each != "null"]
        schema = branches[0] if len(branches) == 1 else "null"
    schema = names.get(schema, schema) if isinstance(schema, str) else schema
    if schema in ("int", "long"):
        yield schema, value
    elif isinstance(schema, dict) and schema["type"] == "record":
        for field in schema["fields"]:
            if field["name"] in value:  # one record in Avro stands for changes of all kinds
                yield from _integers(value[field["name"]], field["type"], names)
    elif isinstance(schema, dict) and schema["type"] in {"array", "map"}:
        for each in value.values() if schema["type"] == "map" else value:
            yield from _integers(each, schema.get("items") or schema["values"], names)


def write() -> None:
    """Put what is written now into the document."""
    printed = examples()
    text = DOC.read_text(encoding="utf-8")
    DOC.write_text(
        BLOCK.sub(lambda m: f"```json {m[1]}\n{json.dumps(printed[m[1]], indent=2)}\n```", text), encoding="utf-8"
    )


if __name__ == "__main__":
    write()
