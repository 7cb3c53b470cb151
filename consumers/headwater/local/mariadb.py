"""A real MariaDB on this machine, without Docker and without root."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sqlalchemy import URL

from headwater.local.addresses import USER, query_fault, url_text
from headwater.local.mariadb_programs import MariaDBInstallation, mariadb_installation
from headwater.local.process import run_tool
from headwater.local.server import LocalServer
from headwater.local.system_user import SystemUser, find_unprivileged_user, make_readable

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
