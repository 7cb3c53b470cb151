"""What is told of clients beside their statements: closed sessions, and what failed before Spark ran anything."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from headwater.events import Event, JobName, Sink, StatementFailed, TableName
from headwater.listeners.capture.scene import Scene
from headwater.listeners.clients import Client, client_in
from headwater.listeners.jobs.endings import in_words

_STATUS: Final = re.compile(r"[A-Z_]+: (?=\[)")
"""What gRPC puts before a message."""
_PLAN: Final = ";\n"
"""Behind this an analysis error shows the plan, with the literals that are in it."""
_WHOLE_NAME: Final = 3

E = TypeVar("E", bound=Event)


class Session(Protocol):
    @property
    def job(self) -> JobName: ...
    @property
    def run(self) -> Any: ...


class Sessions(Protocol):
    @property
    def application_job(self) -> JobName: ...
    def session(self, client: Client) -> Session: ...
    def end_session(self, client: Client) -> None: ...


def asked(draft: E, client: Client | None) -> E:
    """With who asked for it, where that was a client of a server."""
    if client is None:
        return draft
    return draft.model_copy(update={"user": client.user, "operation": client.operation})


def client_events(record: Mapping[str, Any], sessions: Sessions, scene: Scene) -> Iterator[Event]:
    """What the tap tells of a client. The end of a session is told by `sessions`."""
    client = client_in(record)
    if client is None:
        return
    if record["what"] == "closed":
        sessions.end_session(client)
        return
    session = sessions.session(client)
    # which name the session has for its job isn't known here: nothing of it ran
    yield StatementFailed(
        job=session.job,
        run=session.run,
        parent_job=sessions.application_job,
        outputs=tuple(_sink(name, scene) for name in record["targets"]),
        error=in_words("unknown", _STATUS.sub("", record["message"], count=1).partition(_PLAN)[0]),
    )


def _sink(name: Sequence[str], scene: Scene) -> Sink:
    """A name that leaves the catalog or database to the session is what was written, and no table's name."""
    if len(name) == _WHOLE_NAME and scene.catalog_called(name[0]) is not None:
        return Sink(dataset=None, table=TableName(catalog=name[0], database=name[1], table=name[2]))
    return Sink(dataset=None, opaque=".".join(name))
