"""Child processes that always end: the owner stops them, or a watchdog does."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from typing import Final, TypedDict

from headwater.local import watchdog
from headwater.local.errors import StartError
from headwater.local.system_user import SystemUser

# The server waits for this line, so that it never runs before its watchdog does.
_WAIT_FOR_GO = 'read -r go && exec "$@" </dev/null'
STOP_SECONDS = 20.0
TOOL_SECONDS = 120.0
_PORTS: Final = range(20_000, 32_000)
"""Below those that Linux gives to outgoing connections. A client that keeps trying to reach a server that restarts is
given the server's own port one day, connects to itself, and the server can't have its port any more."""
_RANDOM: Final = SystemRandom()
"""A seeded one would choose the same ports in processes that run side by side."""


class LaunchOptions(TypedDict, total=False):
    """What Popen is given beside the command."""

    cwd: Path
    env: dict[str, str]
    user: int
    group: int
    extra_groups: tuple[int, ...]


@dataclass(frozen=True)
class LaunchSpec:
    """How to run a program: a server, or the tool that prepares its data."""

    command: Sequence[str]
    log: Path
    directory: Path
    account: SystemUser | None = None
    environ: Mapping[str, str] | None = None

    def options(self) -> LaunchOptions:
        """Return what Popen is given beside the command."""
        options = LaunchOptions(cwd=self.directory, env=clean_environ(self.environ or {}))
        if self.account is not None:
            options |= {"user": self.account.uid, "group": self.account.gid, "extra_groups": ()}
        return options


def clean_environ(extra: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the user's settings (PGDATA, JAVA_TOOL_OPTIONS …): a server has only ours."""
    kept = {key: os.environ[key] for key in ("PATH", "TMPDIR", "LD_LIBRARY_PATH") if key in os.environ}
    return {"LC_ALL": "C", **kept, **extra}


def run_tool(launch: LaunchSpec, *, timeout: float = TOOL_SECONDS) -> None:
    """Run a program to its end, its output going to the log; raise StartError with the log's end if it fails."""
    program = Path(launch.command[0]).name
    with launch.log.open("ab") as log:
        try:
            done = subprocess.run(
                launch.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=timeout,
                check=False,
                **launch.options(),
            )
        except subprocess.TimeoutExpired:
            raise StartError(f"{program} didn't end within {timeout:.0f} s; its log:\n{tail(launch.log)}") from None
    if done.returncode != 0:
        raise StartError(f"{program} failed ({exit_text(done.returncode)}); its log:\n{tail(launch.log)}")


class ServerProcess:
    """A running server in a session of its own, so that Ctrl-C in a terminal reaches its owner only."""

    def __init__(self, launch: LaunchSpec, *, gentle: signal.Signals, remove: Path | None) -> None:
        """Start it; `gentle` is the signal that stops it, `remove` a directory that goes when we die first."""
        self._gentle = gentle
        with ExitStack() as undo, launch.log.open("ab") as log:
            self._log_starts_at = log.tell()
            self._log = launch.log
            self._server = subprocess.Popen(
                ["/bin/sh", "-c", _WAIT_FOR_GO, "sh", *launch.command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **launch.options(),
            )
            undo.callback(self._abandon)
            self._watchdog = _watch(self._server.pid, gentle, remove)
            undo.pop_all()
        _send(self._server, b"go\n")

    @property
    def pid(self) -> int:
        """The server's process id, which is also its process group."""
        return self._server.pid

    @property
    def running(self) -> bool:
        """Whether it is still there."""
        if self._server.poll() is None:
            return True
        self._release()
        return False

    @property
    def exit(self) -> str:
        """How it ended, in words."""
        code = self._server.poll()
        return "still running" if code is None else exit_text(code)

    def log_since_start(self) -> str:
        """Return what it wrote since it was started this time."""
        with self._log.open("rb") as log:
            log.seek(self._log_starts_at)
            return log.read().decode(errors="replace")

    def stop(self, timeout: float = STOP_SECONDS) -> None:
        """Ask it to stop, and kill it if it hasn't after `timeout`."""
        if self.running:
            with suppress(ProcessLookupError):
                self._server.send_signal(self._gentle)
            with suppress(subprocess.TimeoutExpired):
                self._server.wait(timeout)
        self.kill()

    def kill(self) -> None:
        """SIGKILL to its whole group, and wait for its end."""
        if self._server.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._server.wait()
        self._release()

    def _release(self) -> None:
        """Let the watchdog go: from now on the process id may be somebody else's."""
        if self._watchdog.returncode is None:
            _send(self._watchdog, b".")
            self._watchdog.wait()

    def _abandon(self) -> None:
        self._server.kill()
        self._server.wait()


def _watch(pid: int, gentle: signal.Signals, remove: Path | None) -> subprocess.Popen[bytes]:
    script = Path(watchdog.__file__)
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(script), str(pid), str(int(gentle)), str(remove or "")],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )


def _send(process: subprocess.Popen[bytes], message: bytes) -> None:
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.write(message)
            process.stdin.flush()
        with suppress(BrokenPipeError):
            process.stdin.close()


def exit_text(code: int) -> str:
    """Say an exit code in words."""
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def tail(log: Path, lines: int = 40) -> str:
    """Return the last lines of a log; nothing if there is none."""
    if not log.exists():
        return ""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def free_ports(count: int) -> tuple[int, ...]:
    """Return so many successive ports that were free on 127.0.0.1 a moment ago."""
    while True:
        first = _RANDOM.choice(_PORTS)
        ports = tuple(range(first, first + count))
        with ExitStack() as sockets, suppress(OSError):
            for port in ports:
                sockets.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return ports
