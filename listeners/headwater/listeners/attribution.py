"""What a statement belongs to: the job and run that did it, and the client of a server that asked for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from headwater.events.names import JobName


class Attribution(NamedTuple):
    """The job and run of a statement."""

    job: JobName
    run: UUID
    parent_job: JobName


@dataclass(frozen=True, slots=True)
class Client:
    """In one of its sessions, and where `operation` is named in what it asked for there."""

    server: str
    """connect or thrift."""
    session: str
    """The session's id, as its server tells it."""
    user: str | None = None
    """As whom it came: what that is worth is the server's business."""
    operation: str | None = None

    @property
    def session_key(self) -> tuple[str, str, str | None]:
        """What all operations of a session have in common. Connect's ids are unique for one user."""
        return self.server, self.session, self.user
