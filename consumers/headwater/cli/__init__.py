"""The command line: `headwater <command>`. It wires all rooms together and imports one only when a command needs it."""

from __future__ import annotations

from headwater.cli.app import main

__all__ = ["main"]
