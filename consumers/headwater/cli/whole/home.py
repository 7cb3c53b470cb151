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
from typing import Any, Final

from typing_extensions import Self

from headwater.errors import ConfigurationError, TerminalError
from headwater.local.identity import Identity

_VERSION: Final = 1
_LOCK, _STATE, CONF, LOG = "lock", "state.json", "spark.conf", "up.log"
_OURS: Final = ("kafka", "postgres", "mariadb", "writer")


class Phase(str, Enum):
    STARTING = "starting"
    RUNNING = "running"
    STOPPED = "stopped"


@dataclass
class Part:
    """One server, as its keeper saw it last."""

    is_ready: bool = False
    address: str = ""
    process: Mapping[str, object] = field(default_factory=dict)
    """Its identity; nothing for a server of somebody else's."""
    gentle: int = 15
    log: str = ""
    restarts: int = 0


@dataclass
class State:
    phase: Phase = Phase.STARTING
    keeper: Mapping[str, object] = field(default_factory=dict)
    since: str = ""
    parts: dict[str, Part] = field(default_factory=dict)
    fault: str = ""
    """Why it isn't running, where it didn't stop because it was told to."""

    @property
    def keeper_identity(self) -> Identity | None:
        return Identity.read(self.keeper)

    @property
    def has_keeper(self) -> bool:
        """Whether the one who wrote this is still there."""
        keeper = self.keeper_identity
        return keeper is not None and keeper.is_there

    def left(self) -> Generator[tuple[str, Identity, int]]:
        """Servers that are still there: name, process, and the signal that stops it."""
        for name, part in self.parts.items():
            process = Identity.read(part.process)
            if process is not None and process.is_there:
                yield name, process, part.gentle


class Home:
    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()

    @classmethod
    def of(cls, given: Path | None) -> Self:
        return cls(given or default_home())

    def made(self) -> Self:
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
        """What a keeper says that nobody looks at."""
        return self.path / LOG

    @property
    def conf(self) -> Path:
        return self.path / CONF

    def state(self) -> State | None:
        """What was written last; None where nothing ever ran."""
        try:
            told = json.loads((self.path / _STATE).read_text())
            if told.pop("version") != _VERSION:
                raise TerminalError(f"{self.path} is of another version of headwater: take another by --home")
            parts = {name: Part(**part) for name, part in told.pop("parts").items()}
            return State(Phase(told.pop("phase")), parts=parts, **told)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (KeyError, TypeError, ValueError) as e:
            raise TerminalError(f"{self.path / _STATE} can't be read ({e!r}): remove it if nothing runs there") from e

    def write(self, state: State) -> None:
        """Whole or not at all."""
        part = self.path / f"{_STATE}.part"
        part.touch(mode=0o600)  # addresses hold passwords
        part.write_text(json.dumps({"version": _VERSION, **asdict(state)}, indent=1))
        part.replace(self.path / _STATE)

    @contextmanager
    def held(self) -> Generator[bool]:
        """True for one process at a time, as long as the block lasts; it goes with the process, however that ends."""
        with (self.path / _LOCK).open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def purge(self) -> None:
        """Remove what is ours, and the directory if nothing else is in it."""
        for name in _OURS:
            shutil.rmtree(self.path / name, ignore_errors=True)
        for name in (_STATE, f"{_STATE}.part", CONF, LOG, _LOCK):
            (self.path / name).unlink(missing_ok=True)
        if not any(self.path.iterdir()):
            self.path.rmdir()


def default_home(environ: Mapping[str, str] = os.environ) -> Path:
    """In the user's directory for such things. Database servers of root run as somebody else, who can't enter his."""
    if os.geteuid() == 0:
        return Path("/var/lib/headwater/up")
    shared = environ.get("XDG_STATE_HOME")
    return Path(shared or Path("~", ".local", "state")).expanduser() / "headwater" / "up"


def add_home(parser: Any) -> None:
    """The flag of all three commands."""
    text = f"the directory of data, logs and what runs; {default_home()} if none is named"
    parser.flag("home", Path, None, text, "DIR")
