"""Ports that nobody listens on."""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def refusing_port() -> Generator[int, None, None]:
    """A port that refuses connections, and that nobody else can take meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield int(bound.getsockname()[1])
