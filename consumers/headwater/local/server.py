"""What the local servers share: a directory with data, settings and log; free ports, retries, readiness, stop."""

from __future__ import annotations

import atexit
import secrets
import shutil
import signal
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType

from typing_extensions import Self

from headwater.local.errors import NotOursError, PortTakenError, StartError
from headwater.local.process import LaunchSpec, ServerProcess, free_ports, tail
from headwater.local.progress import announce
from headwater.local.service import ServerOrigin
from headwater.local.system_user import SystemUser, change_owner, require_access

_PORTS = "ports"


class ServerWorkspace:
    """A directory that the user chose and that is kept, or a temporary one that is removed with the server."""

    def __init__(self, name: str, given: Path | None, account: SystemUser | None) -> None:
        self._account = account
        self.is_permanent = given is not None
        if given is None:
            self.path = Path(tempfile.mkdtemp(prefix=f"headwater-{name}-"))
            self.path.chmod(0o711)  # the account goes through to its own directories, and can't list
        else:
            self.path = given.absolute()
            self.path.mkdir(parents=True, exist_ok=True)
        try:
            require_access(self.path, account)
        except BaseException:
            self.remove()
            raise

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.path / "server.log"

    @property
    def throwaway(self) -> Path | None:
        """The directory if it goes with the server."""
        return None if self.is_permanent else self.path

    def own(self, name: str) -> Path:
        """Return a directory that belongs to the account alone, made if it isn't there."""
        place = self.path / name
        if not place.exists():
            place.mkdir(mode=0o700)
            change_owner(place, self._account)
        return place

    def secret(self, name: str) -> str:
        """Return a random password that stays the same as long as the directory does."""
        place = self.path / name
        if not place.exists():
            place.touch(mode=0o600)
            place.write_text(secrets.token_urlsafe(18))
        return place.read_text()

    def ports(self, count: int) -> tuple[int, ...]:
        """Return the ports of the last start, so that addresses stay valid."""
        place = self.path / _PORTS
        recorded = place.read_text().split() if place.exists() else []
        return tuple(map(int, recorded)) if len(recorded) == count and all(map(str.isdecimal, recorded)) else ()

    def keep_ports(self, ports: tuple[int, ...]) -> None:
        """Record the ports for the next start."""
        if self.is_permanent:
            (self.path / _PORTS).write_text(" ".join(map(str, ports)))

    def remove(self) -> None:
        """Remove the directory unless it is to be kept."""
        if not self.is_permanent:
            shutil.rmtree(self.path, ignore_errors=True)


_PORT_TRIES = 5
_POLL_SECONDS = 0.05
_PORT_TAKEN = "Address already in use"


class LocalServer(ABC):
    """A real server as a child process on 127.0.0.1.

    Without a `directory` its data is in a temporary one that is removed with it. With one, data and ports are kept for
    the next start, unless a port is taken by then.
    """

    name: str
    ready_within = 60.0
    _gentle = signal.SIGTERM
    _ports_needed = 1

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._place: ServerWorkspace | None = None
        self._ports: tuple[int, ...] = ()
        self._process: ServerProcess | None = None

    @property
    def origin(self) -> ServerOrigin:
        """See Service."""
        return ServerOrigin.LOCAL

    @property
    @abstractmethod
    def address(self) -> str:
        """See Service."""

    @property
    def running(self) -> bool:
        """See Service."""
        return self._process is not None and self._process.running

    @property
    def pid(self) -> int:
        """The server's process id; NotOursError when it was never started."""
        if self._process is None:
            raise NotOursError(f"{self.name} was not started here: call start() first")
        return self._process.pid

    def start(self) -> Self:
        """See Service."""
        if self.running:
            return self
        try:
            with announce(f"starting {self.name}"):
                self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def kill(self) -> None:
        """See Service."""
        if self._process is not None:
            self._process.kill()

    def restart(self) -> None:
        """See Service."""
        if self._process is not None:
            self._process.stop()
        self.start()

    def stop(self) -> None:
        """See Service."""
        if self._process is not None:
            self._process.stop()
        if self._place is not None:
            self._place.remove()
            atexit.unregister(self.stop)
        self._process, self._place, self._ports = None, None, ()

    @property
    def log(self) -> Path:
        """Where it writes its log."""
        return self._workspace.log

    @property
    def gentle(self) -> signal.Signals:
        """What stops it in order."""
        return self._gentle

    def log_tail(self, lines: int = 40) -> str:
        """See Service."""
        return "" if self._place is None else tail(self._place.log, lines)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _workspace(self) -> ServerWorkspace:
        if self._place is None:
            raise NotOursError(f"{self.name} isn't started: call start() first")
        return self._place

    @property
    def _port(self) -> int:
        if not self._ports:
            raise NotOursError(f"{self.name} has no address before it is started: call start() first")
        return self._ports[0]

    def _account(self) -> SystemUser | None:
        """Return whom the server runs as; None for ourselves."""
        return None

    @abstractmethod
    def _prepare(self) -> None:
        """Fetch and initialise what isn't there yet; called once per workspace, before the first launch."""

    @abstractmethod
    def _command(self) -> list[str]:
        """Write the settings for the ports chosen, and return the command that runs the server in the foreground."""

    @abstractmethod
    def _answer(self) -> str | None:
        """Ask the server something real; return None if it answered well, else what is wrong."""

    def _launch_as(self, command: list[str], *, account: SystemUser | None = None) -> LaunchSpec:
        return LaunchSpec(command, self._workspace.log, self._workspace.path, account)

    def _start(self) -> None:
        if self._place is None:
            self._place = ServerWorkspace(self.name, self._directory, self._account())
            atexit.register(self.stop)
            self._prepare()
        if self._ports:  # a restart: the address was promised to stay
            self._launch()
            return
        before = self._workspace.ports(self._ports_needed)
        for remaining in reversed(range(_PORT_TRIES)):
            self._ports = before or free_ports(self._ports_needed)
            before = ()
            try:
                self._launch()
            except PortTakenError:
                if not remaining:
                    raise
            else:
                self._workspace.keep_ports(self._ports)
                return

    def _launch(self) -> None:
        launch = self._launch_as(self._command(), account=self._account())
        self._process = ServerProcess(launch, gentle=self._gentle, remove=self._workspace.throwaway)
        try:
            self._wait_until_ready(self._process)
        except BaseException:
            self._process.kill()
            raise

    def _wait_until_ready(self, process: ServerProcess) -> None:
        deadline = time.monotonic() + self.ready_within
        while (wrong := self._answer()) is not None:
            if not process.running:
                raise self._ended(process)
            if time.monotonic() > deadline:
                raise StartError(
                    f"{self.name} didn't answer within {self.ready_within:.0f} s ({wrong}); "
                    f"the end of its log:\n{tail(self._workspace.log)}"
                )
            time.sleep(_POLL_SECONDS)

    def _ended(self, process: ServerProcess) -> StartError:
        kind = PortTakenError if _PORT_TAKEN in process.log_since_start() else StartError
        return kind(f"{self.name} ended ({process.exit}); the end of its log:\n{tail(self._workspace.log)}")
