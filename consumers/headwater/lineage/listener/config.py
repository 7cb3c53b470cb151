"""The options below `spark.headwater.jdbc.`: the store's own options (`headwater.lineage.store`), and how to write to
it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, SecretStr, model_validator
from typing_extensions import Self

from headwater.config import Config, Seconds
from headwater.lineage.store.options import StoreOptions
from headwater.lineage.store.urls import DatabaseKind

_CONNECT_SECONDS: Final = "5"


class JdbcConfig(Config):
    """The store's options have the same names as a catalog's `jdbc.` options, without that prefix."""

    url: SecretStr
    """`jdbc:postgresql://host/database`, `jdbc:mysql://…`, `jdbc:sqlite:path`, or a SQLAlchemy URL."""
    driver: str | None = None
    """Java's class of the driver. It has to fit the URL, and says which database it is where the URL doesn't."""
    username: str | None = None
    """Goes before the URL's user."""
    password: SecretStr | None = None
    """The password. A file or a function keeps it out of Spark's configuration."""
    password_file: Path | None = Field(None, alias="password-file")
    """A file with the password, read at each connection."""
    password_callable: str | None = Field(None, alias="password-callable", repr=False)
    """`package.module:function` that returns the password, called at each connection: for tokens that expire."""
    database: str = "paimon"
    """The database of the PIP-5 compatible views."""
    create: bool = True
    """Create the store if it doesn't exist, and migrate an older one, if the user may."""
    timeout: Annotated[Seconds, Field(gt=0)] = 30.0
    """A transaction that takes longer, in seconds, is aborted and retried."""
    batch_events: Annotated[int, Field(ge=1, le=100_000)] = 5_000
    """The most events of one transaction."""

    @model_validator(mode="after")
    def _one_password(self) -> Self:
        given = (self.password, self.password_file, self.password_callable)
        if sum(option is not None for option in given) > 1:
            raise ValueError("write one of password-file, password-callable and password")
        return self

    def store_options(self) -> StoreOptions:
        """Return the store's options, with client timeouts unless the URL has its own."""
        target = self._as_written().target
        missing = {name: value for name, value in self._limits(target.kind).items() if name not in target.url.query}
        url = target.url.update_query_dict(missing).render_as_string(hide_password=False)
        options: dict[str, Any] = {"jdbc_url": SecretStr(url), "jdbc_database": target.database}
        return StoreOptions(**options, jdbc_password_callable=target.password)

    def _as_written(self) -> StoreOptions:
        return StoreOptions(
            jdbc_url=self.url,
            jdbc_driver=self.driver,
            jdbc_username=self.username,
            jdbc_password=self.password,
            jdbc_password_file=self.password_file,
            jdbc_password_callable=self.password_callable,
            jdbc_database=self.database,
        )

    def _limits(self, kind: DatabaseKind) -> dict[str, str]:
        if kind is DatabaseKind.SQLITE:
            return {}
        seconds = str(max(1, round(self.timeout)))
        waits = {"read_timeout": seconds, "write_timeout": seconds} if kind is DatabaseKind.MYSQL else {}
        return {"connect_timeout": _CONNECT_SECONDS, **waits}
