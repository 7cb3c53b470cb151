"""Addresses of servers: checked, converted for our clients, or taken from the environment for one that others run."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from sqlalchemy import URL, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool
from typing_extensions import Self

from headwater.local.errors import AddressError, MissingRequirementError
from headwater.local.service import ForeignService, ServerOrigin
from headwater.plugins import extra_command

_PATIENCE_SECONDS = 10.0
_POLL_SECONDS = 0.2


class ExternalService(ForeignService):
    """Checks that the server answers, uses it and leaves it running. Whoever shares it has to use topic names of their
    own."""

    def __init__(self, name: str, variable: str, address: str, fault: Callable[[str], str | None]) -> None:
        super().__init__(name, ServerOrigin.ENVIRONMENT)
        self.address = address
        self._variable = variable
        self._fault = fault

    @property
    def running(self) -> bool:
        """See Service."""
        return self._fault(self.address) is None

    def start(self) -> Self:
        """See Service."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while (wrong := self._fault(self.address)) is not None:
            if time.monotonic() > deadline:
                raise AddressError(
                    f"nothing usable answers at the address in {self._variable}: {wrong}. Start that server, or unset "
                    f"{self._variable} to have one started here"
                )
            time.sleep(_POLL_SECONDS)
        return self

    def stop(self) -> None:
        """See Service."""

    def log_tail(self, lines: int = 40) -> str:  # noqa: ARG002 -- the protocol's
        """See Service."""
        return ""

    def refusal(self, what: str) -> str:
        return (
            f"{self.name} can't be {what} from here: {self._variable} names a server that somebody else runs. "
            f"Unset {self._variable} to have one started here"
        )


_HOST_PORT = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\],]+):(?P<port>\d{1,5})")


def kafka_address(variable: str, value: str) -> str:
    """Return host:port[,host:port …] without blanks."""
    servers = [server.strip() for server in value.split(",")]
    for server in servers:
        match = _HOST_PORT.fullmatch(server)
        if match is None or not 0 < int(match["port"]) < 65536:
            raise AddressError(f"{variable}: {server!r} is not host:port, as in broker1:9092,broker2:9092")
    return ",".join(servers)


def postgres_address(variable: str, value: str) -> str:
    """Return a SQLAlchemy URL for psycopg; `postgres://` and URLs without a driver are understood."""
    return _url(variable, value, {"postgres", "postgresql"}, "postgresql+psycopg", "postgresql://user:password@host/db")


def mariadb_address(variable: str, value: str) -> str:
    """Return a SQLAlchemy URL for PyMySQL; `mariadb://` and URLs without a driver are understood."""
    return _url(variable, value, {"mysql", "mariadb"}, "mysql+pymysql", "mysql://user:password@host/db")


def _url(variable: str, value: str, schemes: set[str], wanted: str, example: str) -> str:
    try:
        url = make_url(value.strip().removeprefix("jdbc:"))
    except (ArgumentError, ValueError):
        # The text may hold a password, so the message doesn't repeat it.
        raise AddressError(f"{variable} is not a URL, as in {example}") from None
    if url.drivername.partition("+")[0] not in schemes:
        raise AddressError(f"{variable}: {url.drivername}:// is another kind of database; write it as in {example}")
    if not url.host:
        raise AddressError(f"{variable}: the URL names no host; write it as in {example}")
    return url_text(url.set(drivername=wanted))


USER = "headwater"


def url_text(url: URL) -> str:
    """Return the URL as a client needs it, its password included."""
    return url.render_as_string(hide_password=False)


def query_fault(url: str, query: str = "SELECT 1", expected: object = 1) -> str | None:
    """Run a query on a new connection. Return None if the result is as expected, else what is wrong."""
    try:
        engine = create_engine(url, poolclass=NullPool, connect_args={"connect_timeout": 2})
    except ModuleNotFoundError as error:
        raise MissingRequirementError(
            f"the driver {error.name} isn't installed: {extra_command('postgres')}, or with mysql for postgres"
        ) from error
    except ArgumentError as error:
        return str(error)
    try:
        with engine.connect() as connection:
            found = connection.execute(text(query)).scalar_one()
    except SQLAlchemyError as error:
        return str(error.__cause__ or error).strip()
    finally:
        engine.dispose()
    return None if found == expected else f"another server answers there ({found!r} instead of {expected!r})"
