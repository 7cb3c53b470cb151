"""The directory of what runs on this machine: data that stay between runs, logs, and who runs now."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

from typing_extensions import Self

from headwater.cli.flags import Flags
from headwater.errors import ConfigurationError, TerminalError
from headwater.local.process_identity import ProcessIdentity

_VERSION: Final = 1
_LOCK, _STATE, CONF, LOG = "lock", "state.json", "spark.conf", "up.log"
_OURS: Final = ("kafka", "postgres", "mariadb", "writer")


class Phase(str, Enum):
    STARTING = "starting"
    RUNNING = "running"
    STOPPED = "stopped"


@dataclass
class Part:
    """One server, as its supervisor saw it last."""

    is_ready: bool = False
    address: str = ""
    process: Mapping[str, object] = field(default_factory=dict)
    """Its identity; nothing for a server of somebody else's."""
    gentle: int = 15
    log: str = ""
    restarts: int = 0


@dataclass
class DevState:
    phase: Phase = Phase.STARTING
    supervisor: Mapping[str, object] = field(default_factory=dict)
    since: str = ""
    parts: dict[str, Part] = field(default_factory=dict)
    fault: str = ""
    """Why it isn't running, where nobody stopped it."""

    @property
    def supervisor_identity(self) -> ProcessIdentity | None:
        return ProcessIdentity.read(self.supervisor)

    @property
    def has_supervisor(self) -> bool:
        """Return whether the process that wrote this still runs."""
        found = self.supervisor_identity
        return found is not None and found.is_running

    def orphans(self) -> Generator[tuple[str, ProcessIdentity, int]]:
        """Yield servers that still run: name, process, and the signal that stops it."""
        for name, part in self.parts.items():
            process = ProcessIdentity.read(part.process)
            if process is not None and process.is_running:
                yield name, process, part.gentle


class Home:
    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()

    @classmethod
    def of(cls, given: Path | None) -> Self:
        return cls(given or default_home())

    def create(self) -> Self:
        """Make the directory where there is none."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.path.chmod(0o711)  # database servers of root run as somebody else, who goes through to what is theirs
        except OSError as e:
            raise ConfigurationError(f"{self.path} can't be made ({e.strerror}): name another by --home") from e
        return self

    def part(self, name: str) -> Path:
        return self.path / name

    @property
    def log(self) -> Path:
        """Where a supervisor that was left running writes its log."""
        return self.path / LOG

    @property
    def conf(self) -> Path:
        return self.path / CONF

    def state(self) -> DevState | None:
        """Return what was written last; None where nothing ever ran."""
        try:
            stored = json.loads((self.path / _STATE).read_text())
            if stored.pop("version") != _VERSION:
                raise TerminalError(f"{self.path} is of another version of headwater: name another by --home")
            parts = {name: Part(**part) for name, part in stored.pop("parts").items()}
            return DevState(Phase(stored.pop("phase")), parts=parts, **stored)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (KeyError, TypeError, ValueError) as e:
            raise TerminalError(f"{self.path / _STATE} can't be read ({e!r}): remove it if nothing runs there") from e

    def write(self, state: DevState) -> None:
        """Write the state whole or not at all."""
        part = self.path / f"{_STATE}.part"
        part.touch(mode=0o600)  # addresses hold passwords
        part.write_text(json.dumps({"version": _VERSION, **asdict(state)}, indent=1))
        part.replace(self.path / _STATE)

    @contextmanager
    def hold_lock(self) -> Generator[bool]:
        """Yield True for one process at a time, as long as the block lasts or the process does."""
        with (self.path / _LOCK).open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def ours(self) -> list[Path]:
        """Return what there is of ours in the directory."""
        names = (*_OURS, _STATE, f"{_STATE}.part", CONF, LOG, _LOCK)
        return [self.path / name for name in names if (self.path / name).exists()]

    def purge(self) -> None:
        """Remove what is ours, and the directory if nothing else is in it."""
        for each in self.ours():
            if each.is_dir():
                shutil.rmtree(each, ignore_errors=True)
            else:
                each.unlink(missing_ok=True)
        if not any(self.path.iterdir()):
            self.path.rmdir()


def default_home(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the user's directory for such things; of root one that other users enter, as his database servers do."""
    if os.geteuid() == 0:
        return Path("/var/lib/headwater/up")
    shared = environ.get("XDG_STATE_HOME")
    return Path(shared or Path("~", ".local", "state")).expanduser() / "headwater" / "up"


def add_home(parser: Flags) -> None:
    """Add the flag of all three commands."""
    text = f"the directory of data and logs, else {default_home()}"
    parser.flag("home", Path, None, text, "DIR")
