"""What the store's own interface gives and takes: Paimon PIP-5's entities."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from headwater.events.names import Name
from headwater.events.scalars import Long, Time


class TableLineage(BaseModel):
    """A job reads or writes a table."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    job: Name
    database: str
    table: Name
    create_time: Time | None = None
    """When this was told first; the store's own time where a caller leaves it out."""


class DataLineage(TableLineage):
    """A barrier of a job read or made a snapshot."""

    barrier_id: Long
    snapshot_id: Long
