"""Events that differ in their place and their run only, and a codec that counts what it decodes."""

from __future__ import annotations

from uuid import UUID

from headwater.events import Event
from headwater.events.avro import Codec
from headwater.testing.examples import EXAMPLES


class CountingCodec(Codec):
    """Counts what is decoded."""

    def __init__(self) -> None:
        super().__init__()
        self.decoded = 0

    def decode(self, data: bytes) -> object:  # type: ignore[override]
        self.decoded += 1
        return super().decode(data)


def example(kind: type[Event]) -> Event:
    return next(each for each in EXAMPLES if type(each) is kind and each.part is None)


def of_one_shape(kind: type[Event], count: int) -> list[Event]:
    """The same but for its place in the order and its run."""
    first = example(kind)
    return [
        first.model_copy(update={"sequence": n, "family_sequence": n, "run": UUID(int=n // 3 + 1)})
        for n in range(1, count + 1)
    ]
