"""Whose a statement is where a server in this driver runs it: a client of Spark Connect or of the Thrift server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Client:
    """In one of its sessions, and where `operation` is told in what it asked for there."""

    server: str
    """connect or thrift."""
    session: str
    """The session's id, as its server tells it."""
    user: str | None = None
    """As whom it came: what that is worth is the server's business."""
    operation: str | None = None

    @property
    def of_session(self) -> tuple[str, str, str | None]:
        """What all operations of a session have in common. Connect's ids are unique for one user."""
        return self.server, self.session, self.user


def client_in(record: Mapping[str, Any]) -> Client | None:
    """Of a record of the tap; None where nobody asked but the driver's own code."""
    told = record.get("client")
    return None if told is None else Client(told["server"], told["session"], told.get("user"), told.get("operation"))
