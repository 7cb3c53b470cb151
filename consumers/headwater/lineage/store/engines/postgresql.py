"""PostgreSQL: the tables have a schema of their own, which `search_path` names."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import URL, Engine, event

from headwater.lineage.store.options import StoreAddress

_SETTINGS: Final[dict[str, Any]] = {
    "pool_size": 5,
    "max_overflow": 15,
    "pool_timeout": 30,
    "pool_pre_ping": True,
}
# A host that doesn't answer is given up after 10 s; one that went away in the middle of a question after half a minute.
_LIMITS: Final = {
    "connect_timeout": "10",
    "application_name": "headwater",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "4",
    "tcp_user_timeout": "30000",
}


def prepare_url(url: URL, *, readonly: bool) -> tuple[URL, dict[str, Any]]:  # noqa: ARG001 - each kind is given both
    missing = {name: value for name, value in _LIMITS.items() if name not in url.query}
    return url.update_query_dict(missing), {**_SETTINGS}


def register_events(engine: Engine, target: StoreAddress, *, readonly: bool) -> None:
    @event.listens_for(engine, "connect", insert=True)
    def set_up(connection: Any, _: Any) -> None:
        """Outside of a transaction, so that a rollback doesn't take it back."""
        before = connection.autocommit
        connection.autocommit = True
        connection.execute(f"SET search_path TO {target.schema}")
        if readonly:
            connection.execute("SET default_transaction_read_only TO on")
        connection.autocommit = before
