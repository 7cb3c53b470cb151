"""What a driver and its shipper say to each other: a JSON object per line, over a pair of sockets.

Nothing of it matters for what is delivered: records are in the spool, and how far a listener is stands in its cursor.
So each side goes on where the other one is gone, or doesn't listen.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter

from headwater.listeners.bus.report import ListenerReport

_CHUNK: Final = 1 << 16
_MAX_LINE: Final = 8 << 20
KIND: Final = "kind"


@dataclass(frozen=True)
class ShipperState:
    """How far the shipper is."""

    listeners: tuple[ListenerReport, ...] = ()
    acknowledged: Mapping[str, int] = field(default_factory=dict)
    """By listener, the offset before which all is acknowledged, of the driver's own spool."""
    faults: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By listener that can't be created, the kind of error and its words."""
    shipped: int = 0
    """Spools of dead drivers that were delivered."""
    has_looked: bool = False
    """Whether all of those that there were at its start, and that could be shipped, are."""


@cache
def _state_adapter() -> TypeAdapter[ShipperState]:
    """Made when first used: it takes ten milliseconds, and most drivers have no shipper."""
    return TypeAdapter(ShipperState)


class Channel:
    """One end. Any thread sends; one receives."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._sending = threading.Lock()

    def send(self, kind: str, **fields: Any) -> bool:
        """Send, and wait until there is room for it; False where nobody listens any more."""
        return self._send(kind, fields, flags=0)

    def offer(self, kind: str, **fields: Any) -> bool:
        """Send if that takes no waiting; whether it is sent."""
        return self._send(kind, fields, flags=socket.MSG_DONTWAIT)

    def send_state(self, state: ShipperState) -> bool:
        return self.send("state", state=_state_adapter().dump_python(state, mode="json"))

    def receive(self) -> Iterator[dict[str, Any]]:
        """Yield what comes, until nobody is at the other end. What can't be read is passed over."""
        rest = b""
        while len(rest) < _MAX_LINE:
            try:
                data = self._end.recv(_CHUNK)
            except OSError:
                return
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                with contextlib.suppress(ValueError):
                    message = json.loads(line)
                    if isinstance(message, dict):
                        yield message

    def close(self) -> None:
        """`receive` ends, here and on the other side."""
        with contextlib.suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)
        self._end.close()

    def forget(self) -> None:
        """Close this process's copy only: it was forked from the one that uses it."""
        self._end.close()

    def _send(self, kind: str, fields: Mapping[str, Any], *, flags: int) -> bool:
        data = json.dumps({KIND: kind, **fields}).encode() + b"\n"
        with self._sending:
            try:
                if flags:
                    return self._end.send(data, flags) == len(data)
                self._end.sendall(data)
            except OSError:
                return False
        return True


def parse_state(message: Mapping[str, Any]) -> ShipperState:
    """A ValueError where it is none."""
    return _state_adapter().validate_python(message.get("state"))
