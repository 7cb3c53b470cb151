"""Rows that one process packs and another one writes: most as bytes of PostgreSQL's COPY, which cost a fraction of rows
to hand over. Few rows, rows that aren't in this format yet, and those for another database are tuples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from headwater.lineage.bulk.packing import group_by_kind
from headwater.lineage.rows import KINDS, Row, RowKind
from headwater.lineage.rows.columns import RowTuple
from headwater.lineage.rows.copy_format import CopyRows

FEW: Final = 60
"""Up to this many rows are quicker as the parameters of a statement."""
_KIND_OF: Final = {kind.name: kind for kind in KINDS}


class PackedRows(NamedTuple):
    """Rows of one kind, of different keys, sorted by primary key."""

    name: str
    """The kind's name."""
    total: int
    rows: Sequence[RowTuple]
    """All rows, unless they are in `copied`."""
    copied: bytes = b""
    """The rows as tuples of a binary COPY."""

    @property
    def kind(self) -> RowKind:
        return _KIND_OF[self.name]

    def ordered(self) -> Sequence[RowTuple]:
        return self.rows


def pack_rows(rows: Iterable[Row], copies: CopyRows | None = None, *, as_copy: bool) -> list[PackedRows]:
    """Combine the rows of each key and pack them, in the order in which every transaction writes kinds. Raises what
    `transactions.DRIVER_DATA_ERRORS` names for a value that can't be sent. `as_copy` is for PostgreSQL."""
    return [
        PackedRows(pile.kind.name, len(pile), (), b"".join(pile.ordered_copies()))
        if as_copy and len(pile) > FEW and pile.is_for_copy()
        else PackedRows(pile.kind.name, len(pile), pile.ordered())
        for pile in group_by_kind(rows, copies)
    ]
