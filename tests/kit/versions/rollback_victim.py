"""`headwater rollback …` in a process group of its own, which kills itself after so many tables: 0 for never.

python -m tests.kit.versions.rollback_victim 2 to lake.db.orders@3 --chain --yes
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from headwater.cli import main
from headwater.versions.rollback.session_tables import SessionTables


def run(kill_after: int, words: list[str]) -> int:
    report, calls = SessionTables.report, []

    def report_or_die(self: SessionTables, *given: Any) -> None:
        """The table's commit is made then, and nobody was told of it."""
        calls.append(given)
        if len(calls) == kill_after:
            os.killpg(0, signal.SIGKILL)  # and its JVM
        report(self, *given)

    setattr(SessionTables, "report", report_or_die)  # noqa: B010 - of another shape
    return main(["rollback", *words])


if __name__ == "__main__":
    sys.exit(run(int(sys.argv[1]), sys.argv[2:]))
