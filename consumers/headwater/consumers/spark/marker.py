"""Whether a message is one event and nothing else.

Avro says nothing about where a record ends, and `from_avro` stops reading there: what follows is dropped without a
word. So the message is read with a mark behind it, the MD5 of its bytes, and a schema that has a field for the mark at
its end. The mark is read if and only if the record ends where the message does.

The fields before the mark are read, though skipping would be faster: Avro 1.11 (Spark 3.5) skips a list by the size
that stands in the bytes, and goes back and forth for ever where that is negative.
"""

from __future__ import annotations

import json
from typing import Final

from headwater.errors import ConfigurationError
from headwater.events.avro import WriterSchema

MARK: Final = "headwater_end"
_FIELD: Final = {"name": MARK, "type": {"type": "fixed", "name": "HeadwaterEnd", "size": 16}}


def mark_of(value: str) -> str:
    """SQL for the mark that goes behind the bytes of a message."""
    return f"unhex(md5({value}))"


def with_mark(schema: WriterSchema) -> str:
    """The schema of an event with the mark behind it."""
    content = json.loads(schema.text)
    if any(field["name"] == MARK for field in content["fields"]):
        raise ConfigurationError(f"the schema of {schema.kind} has a field {MARK}, which is the name of the mark")
    return json.dumps({**content, "fields": [*content["fields"], _FIELD]})
