"""The writer as one more server: started when broker and database answer, ready when it reads and stores."""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Final

from headwater.local.process import LaunchSpec
from headwater.local.server import LocalServer
from headwater.local.system_user import SystemUser

_ASK_SECONDS: Final = 2.0
_INSTANCE: Final = "group.instance.id=headwater-dev"
"""A writer that follows one that was killed takes over its partitions at once: it is the same member."""
_DIRECT: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class WriterServer(LocalServer):
    """`address` is where its probes are."""

    name = "writer"

    def __init__(self, bus: str, store: str, directory: Path) -> None:
        super().__init__(directory)
        self._bus = bus
        self._store = store

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def _prepare(self) -> None:
        """Nothing: it makes the tables of a new store itself."""

    def _command(self) -> list[str]:
        health = f"127.0.0.1:{self._port}"
        command = [sys.executable, "-m", "headwater.cli", "writer", "run", "--bus", self._bus, "--health", health]
        return [*command, "--kafka", _INSTANCE] if self._bus.startswith("kafka:") else command

    def _launch_as(self, command: list[str], *, account: SystemUser | None = None) -> LaunchSpec:
        """The store's password stands in its environment, which others can't see, as they can a command."""
        environ = {"HEADWATER_STORE": self._store, "PYTHONUNBUFFERED": "1"}
        environ |= {name: os.environ[name] for name in ("HOME", "PYTHONPATH") if name in os.environ}
        return replace(super()._launch_as(command, account=account), environ=environ)

    def _answer(self) -> str | None:
        return probe(f"{self.address}/ready")[1] or None


def probe(url: str) -> tuple[str, str]:
    """Return what a probe answers, and what is wrong."""
    try:
        with _DIRECT.open(url, timeout=_ASK_SECONDS) as answer:
            return answer.read().decode(), ""
    except urllib.error.HTTPError as e:
        with e:
            return "", e.read().decode().strip() or e.reason
    except OSError as e:
        return "", str(e)
