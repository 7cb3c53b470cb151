"""Events in a spool, as a durable listener gets them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NewType, TypeAlias
from uuid import UUID

from headwater.errors import TerminalError
from headwater.events.envelope import Event, EventFamily, EventId
from headwater.events.keys import FAMILY, KIND, PRODUCER, SEQUENCE, Headers

if TYPE_CHECKING:  # the codec's import takes a while, and who only passes bytes on never needs it
    from headwater.events.avro import UnknownEvent

SpoolPosition = NewType("SpoolPosition", int)
"""Where in one spool a record is. Positions grow with the order of events and may leave some out; they mean nothing
else, and nothing in another spool."""

Decode: TypeAlias = "Callable[[bytes], Event | UnknownEvent]"


class RecordError(TerminalError):
    """The headers beside an event's bytes are missing or wrong, so what the event is can't be determined.

    >>> from headwater.errors import TerminalError
    >>> issubclass(RecordError, TerminalError)
    True
    """


class RefusedRecordError(TerminalError):
    """The target never takes the record at this position, whatever is waited for: it is too large, say.

    >>> from headwater.spi import SpoolPosition
    >>> RefusedRecordError("5 MB, where 1 MB is the limit", SpoolPosition(7)).position
    7
    """

    def __init__(self, message: str, position: SpoolPosition) -> None:
        super().__init__(message)
        self.position = position


@dataclass(frozen=True)
class EventRecord:
    """An event in the spool. `data`, `key` and `headers` go over the wire as they are.

    Nothing is decoded before somebody asks for `event`. A newer driver may have left a kind that this version of
    headwater doesn't know: everything else here can be read all the same.

    >>> from headwater.testing.examples import EXAMPLES
    >>> from headwater.testing.listeners import record
    >>> each = record(1, EXAMPLES[0])
    >>> each.kind == EXAMPLES[0].kind and each.event == EXAMPLES[0]
    True
    """

    position: SpoolPosition
    data: bytes
    key: bytes
    """As `headwater.events.keys.key_of` has it: records of one key keep their order."""
    headers: Headers
    decode: Decode = field(repr=False, compare=False)

    @classmethod
    def of(cls, position: int, data: bytes, key: bytes, headers: Headers, decode: Decode) -> EventRecord:
        """The same in a fifth of the time: a bus makes one for every record."""
        made = object.__new__(cls)
        made.__dict__.update(position=position, data=data, key=key, headers=headers, decode=decode)
        return made

    @cached_property
    def event(self) -> Event | UnknownEvent:
        """A DecodeError where the bytes are no event."""
        return self.decode(self.data)

    @cached_property
    def event_id(self) -> EventId:
        """The same in every copy of this event."""
        try:
            return EventId(UUID(self._header(PRODUCER)), int(self._header(SEQUENCE)))
        except ValueError as e:
            raise RecordError(f"the record at {self.position} has no right producer and sequence beside it") from e

    @property
    def kind(self) -> str:
        return self._header(KIND)

    @property
    def family(self) -> EventFamily:
        """UNKNOWN for one that this version doesn't know."""
        value = self._header(FAMILY)
        return EventFamily(value) if value in EventFamily.__members__ else EventFamily.UNKNOWN

    def _header(self, name: str) -> str:
        for each, value in self.headers:
            if each == name:
                return value.decode("utf-8", "replace")
        raise RecordError(f"the record at {self.position} has no header {name}: what wrote this spool isn't headwater")


@dataclass(frozen=True)
class RecordBatch:
    """Records of one spool in their order; at least one.

    >>> from headwater.testing.examples import EXAMPLES
    >>> from headwater.testing.listeners import batch
    >>> records = batch(EXAMPLES[:3])
    >>> len(records), records.end == max(record.position for record in records)
    (3, True)
    """

    records: Sequence[EventRecord]

    def __post_init__(self) -> None:
        if not self.records:
            raise ValueError("a batch holds at least one record")

    def __iter__(self) -> Iterator[EventRecord]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

    @property
    def end(self) -> SpoolPosition:
        """The position of the last record: the answer when all of them are dealt with."""
        return self.records[-1].position
