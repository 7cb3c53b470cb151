"""What the templates of events have to have in common so that their rows are made together, by columns."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from headwater.lineage.mapping.row_templates import CopyTemplate

LONG: Final = 0
TEXT: Final = -1
"""Widths of values that aren't bytes of a fixed length."""


class SlotPlace(NamedTuple):
    """Where a slot is in an event, such as `inputs.0.rows`, and how wide its value is."""

    path: str
    width: int


class FactLayout(NamedTuple):
    """The places of an environment that a row takes its values from, and those that its id is a hash of."""

    kind: str
    places: tuple[int, ...]
    key: tuple[int, ...]

    @classmethod
    def of(cls, template: CopyTemplate) -> FactLayout:
        return cls(template.kind.name, template.places, template.key.places)


class ColumnLayout(NamedTuple):
    """Two templates with the same layout differ in constants only."""

    family: str
    slots: tuple[SlotPlace, ...]
    stamped: tuple[int, ...]
    """The slots of producer, sequence, number in the family, and time."""
    counts: tuple[int, ...]
    """The slots of numbers that have to be at least 0."""
    ranks: tuple[int, ...]
    texts: tuple[tuple[str | int, ...], ...]
    run_key: tuple[int, ...]
    facts: tuple[FactLayout, ...]

    @property
    def time(self) -> int:
        """The place of the event's time in an environment; the places of stamps, texts and ids follow."""
        return len(self.slots) + 1

    @property
    def first_text(self) -> int:
        return self.time + 1 + len(self.ranks)

    @property
    def first_id(self) -> int:
        return self.first_text + len(self.texts)


def width_of(value: Any) -> int:
    return LONG if isinstance(value, int) else TEXT if isinstance(value, str) else len(value)
