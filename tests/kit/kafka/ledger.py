"""What was reported, written down past all buffers as soon as the spool had it, by whoever emitted it.

A ledger survives the kill -9 of its process. It holds a line for each event: who emitted it, the how-manieth it is, its
key, its kind, and a digest of the bytes that have to arrive.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from uuid import UUID

from headwater.events.avro import Codec
from headwater.events.envelope import Event, EventId
from headwater.events.keys import key_of


@dataclass(frozen=True)
class SpooledEvent:
    """An event that the spool took."""

    id: EventId
    kind: str
    key: bytes
    digest: str

    def __str__(self) -> str:
        return f"{self.id.producer} {self.id.sequence} {self.kind} {self.key.hex()} {self.digest}\n"

    @classmethod
    def parse(cls, line: str) -> SpooledEvent:
        producer, sequence, kind, key, digest = line.split(" ")
        return cls(EventId(UUID(producer), int(sequence)), kind, bytes.fromhex(key), digest)

    @classmethod
    def of(cls, event: Event) -> SpooledEvent:
        return cls(event.event_id, event.kind, key_of(event), digest_of(Codec().encode(event)))


def digest_of(data: bytes) -> str:
    return sha256(data).hexdigest()[:32]


class Ledger:
    """Written by one process; `note` comes back when the kernel has it."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, events: Iterable[Event]) -> None:
        os.write(self._descriptor, "".join(str(SpooledEvent.of(event)) for event in events).encode())

    def close(self) -> None:
        os.close(self._descriptor)


def read_ledger(path: Path) -> list[SpooledEvent]:
    """What is noted so far, in order."""
    text = path.read_text() if path.exists() else ""
    return [SpooledEvent.parse(line) for line in text[: text.rfind("\n") + 1].splitlines()]
