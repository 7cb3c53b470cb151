"""A table change that only a newer version has a word for doesn't cost the rest of the event."""

from __future__ import annotations

import io
import json
from typing import Any

from fastavro import schemaless_reader, schemaless_writer

from headwater.events import AlterTable
from headwater.events.avro import Codec, current_schema
from headwater.events.changes import DropColumn, OtherChange
from headwater.testing.examples import EXAMPLES

EVENT = next(event for event in EXAMPLES if isinstance(event, AlterTable))


def test_an_unknown_change_is_read_as_another_change() -> None:
    schema, codec = current_schema(AlterTable), Codec()
    changed = EVENT.model_copy(update={"changes": (DropColumn(path=("a",)), DropColumn(path=("b",)))})
    data = codec.encode(changed)
    record: Any = schemaless_reader(io.BytesIO(data[10:]), schema.parsed, None)
    record["changes"][0]["change"] = "SetMood"
    buffer = io.BytesIO()
    schemaless_writer(buffer, schema.parsed, record)
    back = codec.decode(data[:10] + buffer.getvalue())
    assert isinstance(back, AlterTable)
    assert back.changes == (OtherChange(what="SetMood"), DropColumn(path=("b",)))
    assert back.table == EVENT.table


def test_all_members_of_the_union_are_one_flat_record() -> None:
    fields = json.loads(current_schema(AlterTable).text)["fields"]
    (changes,) = [field["type"] for field in fields if field["name"] == "changes"]
    assert changes["items"]["name"] == "TableChange"
    assert changes["items"]["fields"][0]["name"] == "change"
    assert all(field["type"][0] == "null" for field in changes["items"]["fields"][1:])
