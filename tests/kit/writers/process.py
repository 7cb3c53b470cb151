"""`headwater writer run` as a process that a round kills, freezes, stops and starts again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from headwater.cli.exits import Exit
from headwater.lineage.store import Store
from headwater.local import KafkaServer
from tests.kit.processes import children_of

ROOT: Final = Path(__file__).parents[3]
PROGRAM: Final = ("headwater.cli",)
ENDS_WITHIN: Final = 60.0


class WriterProcess:
    """It doesn't run before it is started; whoever has made it kills it in the end."""

    def __init__(
        self,
        folder: Path,
        flags: Sequence[str],
        settings: Mapping[str, str],
        program: Sequence[str] = PROGRAM,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`settings` are the Kafka client's."""
        self._log = folder
        self._command = [sys.executable, "-m", *program, "writer", "run", *flags]
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
            "HEADWATER_WRITER_KAFKA": "\n".join(f"{key}={value}" for key, value in settings.items()),
            **(environment or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self.faults: list[str] = []
        """How it ended when nobody had asked it to."""

    @property
    def words(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def pid(self) -> int:
        """Of the one that runs; 0 of none."""
        return 0 if self._process is None else self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        self.look_after(restart=False)
        if not self.is_running:
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    self._command,
                    cwd=ROOT,
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            self.starts += 1

    def kill(self) -> None:
        """kill -9."""
        self.look_after(restart=False)
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
            self._process = None

    def kill_process(self) -> None:
        """kill -9 of one that the writer has begun: the first one, or the last."""
        children = children_of(self.pid) if self.is_running else []
        for each in children[:: max(1, len(children) - 1)][self.starts % 2 :][:1]:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)

    def freeze(self) -> None:
        """It does nothing more when this returns. The signal reaches one thread, and others go on for a moment."""
        self._signal(signal.SIGSTOP)
        if self.is_running:
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """As an operator does; what it has in its hands has to be stored soon."""
        self.look_after(restart=False)
        if self._process is None:
            return
        self._signal(signal.SIGTERM)
        self.thaw()  # who is frozen doesn't hear it
        try:
            code = self._process.wait(ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            self.faults.append(f"told to stop, it is still there after {ENDS_WITHIN:.0f} s")
            self.kill()
            return
        self._process = None
        if code not in (Exit.DONE, -signal.SIGTERM):  # the latter while it still imports
            self.faults.append(f"told to stop, it ended with {code}")

    def look_after(self, *, restart: bool = True) -> None:
        """As a supervisor does: what ended by itself is started again, but ends only with TRY_AGAIN."""
        if self._process is None or (code := self._process.poll()) is None:
            return
        self._process = None
        if code != Exit.TRY_AGAIN:
            self.faults.append(f"it ended by itself with {code}")
        if restart:
            self.start()

    def _signal(self, which: signal.Signals) -> None:
        if self.is_running:
            assert self._process is not None
            self._process.send_signal(which)


def writer_process(kafka: KafkaServer, topic: str, url: str, *more: str) -> subprocess.Popen[str]:
    """`headwater writer run` from a topic into a store."""
    places = ["--bus", f"kafka://{kafka.address}/{topic}", "--store", url, "--group", "g"]
    command = [sys.executable, "-m", "headwater.cli", "writer", "run", *places, *more]
    environment = {**os.environ, "HEADWATER_WRITER_KAFKA": "session.timeout.ms=6000\nheartbeat.interval.ms=500"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def wait_for_rows(store: Store, process: subprocess.Popen[str], most: int) -> None:
    """Until it has stored something new; with so many commits nothing new will come."""
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        asked = "SELECT count(*) FROM commits"
        before = connection.exec_driver_sql(asked).scalar_one()
        while process.poll() is None and connection.exec_driver_sql(asked).scalar_one() == before < most:
            pass
