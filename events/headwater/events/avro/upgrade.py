"""The one place where an old version of a kind becomes the newest. Added fields need no step: Avro fills defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from headwater.events.avro.schema import version_of
from headwater.events.envelope import Event

STEPS: Final[Mapping[tuple[str, int], Callable[[dict[str, Any]], dict[str, Any]]]] = {}
"""What to do, beyond Avro's own resolution, to come from that version of a kind to the next."""


def upgraded(kind: type[Event], version: int, record: dict[str, Any]) -> dict[str, Any]:
    """The record, already read by the newest schema, with the meaning of the newest version."""
    newest = version_of(kind)
    for step in range(max(version, 0), newest):  # a version below 0 would be a long way up
        record = STEPS.get((kind.__name__, step), _nothing)(record)
    record["schema_version"] = newest
    return record


def _nothing(record: dict[str, Any]) -> dict[str, Any]:
    return record
