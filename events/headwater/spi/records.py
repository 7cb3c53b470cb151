"""Events in a spool, as a durable listener is handed them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NewType, TypeAlias
from uuid import UUID

from headwater.errors import TerminalError
from headwater.events.envelope import Event, EventId, Family
from headwater.events.keys import FAMILY, KIND, PRODUCER, SEQUENCE, Headers

if TYPE_CHECKING:  # the codec's import takes a while, and who only passes bytes on never needs it
    from headwater.events.avro import UnknownEvent

Position = NewType("Position", int)
"""Where in one spool a record is. Positions grow with the order of events and may leave some out; they mean nothing
else, and nothing in another spool."""

Decode: TypeAlias = "Callable[[bytes], Event | UnknownEvent]"


class RecordError(TerminalError):
    """What stands beside an event's bytes doesn't tell what it is."""


@dataclass(frozen=True)
class Record:
    """An event in the spool. `data`, `key` and `headers` are what goes over the wire, as capture wrote them.

    They are all that passing an event on takes, so nothing is decoded before somebody asks for `event`. Its kind may be
    one that this version of headwater doesn't know, when it ships what a newer driver left behind: everything else here
    is told all the same.
    """

    position: Position
    data: bytes
    key: bytes
    """As `headwater.events.keys.key_of` has it: records of one key keep their order."""
    headers: Headers
    decode: Decode = field(repr=False, compare=False)

    @classmethod
    def of(cls, position: int, data: bytes, key: bytes, headers: Headers, decode: Decode) -> Record:
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
    def family(self) -> Family:
        """UNKNOWN for one that this version doesn't know."""
        told = self._header(FAMILY)
        return Family(told) if told in Family.__members__ else Family.UNKNOWN

    def _header(self, name: str) -> str:
        for each, value in self.headers:
            if each == name:
                return value.decode("utf-8", "replace")
        raise RecordError(f"the record at {self.position} has no header {name}: what wrote this spool isn't headwater")


@dataclass(frozen=True)
class Batch:
    """Records of one spool in order, never none."""

    records: Sequence[Record]

    def __post_init__(self) -> None:
        if not self.records:
            raise ValueError("a batch holds at least one record")

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

    @property
    def end(self) -> Position:
        """The position of the last record: the answer when all of them are dealt with."""
        return self.records[-1].position
