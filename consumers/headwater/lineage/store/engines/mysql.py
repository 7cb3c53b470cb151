"""MySQL and MariaDB: full Unicode, and strict mode, so that a value that doesn't fit is an error."""

from __future__ import annotations

import ssl
from typing import Any, Final

from sqlalchemy import URL, Engine, event

from headwater.errors import ConfigurationError
from headwater.lineage.store.options import StoreAddress

_SETTINGS: Final[dict[str, Any]] = {
    "pool_size": 5,
    "max_overflow": 15,
    "pool_timeout": 30,
    "pool_pre_ping": True,
    "pool_recycle": 3600,
}
_LIMITS: Final = {"connect_timeout": 10, "read_timeout": 600, "write_timeout": 60}
_LATER: Final = "read_timeout_later"
_MODE: Final = "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO"


def prepare_url(url: URL, *, readonly: bool) -> tuple[URL, dict[str, Any]]:  # noqa: ARG001 - each kind is given both
    query: dict[str, Any] = dict(url.query)
    arguments: dict[str, Any] = {name: _number(query.pop(name, value), name) for name, value in _LIMITS.items()}
    query[_LATER] = str(arguments["read_timeout"])
    arguments["read_timeout"] = arguments["connect_timeout"]
    encryption = {name: query.pop(name) for name in [*query] if name == "ssl" or name.startswith("ssl_")}
    arguments |= _tls_arguments(encryption)
    query.setdefault("charset", "utf8mb4")
    return url.set(query=query), {**_SETTINGS, "connect_args": arguments}


def register_events(engine: Engine, _: StoreAddress, *, readonly: bool) -> None:
    """Set the session up after connecting.

    The client's connect timeout only covers the TCP connect. So the read timeout is short until the server has
    answered, and is then set to the configured one.
    """

    @event.listens_for(engine, "do_connect")
    def without_ours(_: Any, __: Any, ___: Any, parameters: dict[str, Any]) -> None:
        parameters.pop(_LATER, None)

    @event.listens_for(engine, "connect", insert=True)
    def set_up(connection: Any, _: Any) -> None:
        connection._read_timeout = int(str(engine.url.query[_LATER]))  # noqa: SLF001 - there is no other way
        with connection.cursor() as cursor:
            cursor.execute(f"SET SESSION sql_mode = '{_MODE}', time_zone = '+00:00'")
            cursor.execute("SET NAMES utf8mb4 COLLATE utf8mb4_bin")
            if readonly:
                cursor.execute("SET SESSION TRANSACTION READ ONLY")


def _number(value: object, name: str) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise ConfigurationError(f"jdbc.url: {name} isn't a whole number of seconds") from None


def _tls_arguments(given: dict[str, Any]) -> dict[str, Any]:
    """Build the TLS context. PyMySQL's own context would accept any host with a certificate of a well-known authority.
    Without TLS options the connection is encrypted if the server supports it."""
    if not given:
        return {}
    if _is_true(given.get("ssl_disabled")):
        return {"ssl_disabled": True}
    try:
        context = ssl.create_default_context(cafile=given.get("ssl_ca"), capath=given.get("ssl_capath"))
        if "ssl_cert" in given:
            context.load_cert_chain(given["ssl_cert"], given.get("ssl_key"))
    except OSError as e:  # an error of TLS is one too
        raise ConfigurationError(f"jdbc.url: the files of ssl_ca, ssl_cert or ssl_key can't be used: {e}") from None
    is_checked = bool({"ssl_ca", "ssl_capath", "ssl_verify_cert", "ssl_verify_identity"} & given.keys())
    names_host = given.get("ssl_verify_identity", given.get("ssl_check_hostname"))
    context.check_hostname = is_checked and (
        "ssl_verify_cert" not in given if names_host is None else _is_true(names_host)
    )
    context.verify_mode = ssl.CERT_REQUIRED if is_checked else ssl.CERT_NONE
    return {"ssl": context}


def _is_true(value: object) -> bool:
    return str(value).lower() in {"true", "1", "yes"}
