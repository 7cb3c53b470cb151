"""What stands under `spark.headwater.jdbc.`: the store's own options (`headwater.lineage.store`), and how it is written
to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, SecretStr, model_validator
from typing_extensions import Self

from headwater.config import Config, Seconds
from headwater.lineage.store.options import StoreOptions
from headwater.lineage.store.urls import Database

_CONNECT_SECONDS: Final = "5"


class JdbcConfig(Config):
    """The words of the store's options are those of a catalog's `jdbc.` options, without that before them."""

    url: SecretStr
    """`jdbc:postgresql://host/database`, `jdbc:mysql://…`, `jdbc:sqlite:path`, or a SQLAlchemy URL."""
    driver: str | None = None
    username: str | None = None
    password: SecretStr | None = None
    password_file: Path | None = Field(None, alias="password-file")
    password_callable: str | None = Field(None, alias="password-callable", repr=False)
    database: str = "paimon"
    """Where the seed-shaped views are."""
    create: bool = True
    """Make the store where there is none, and bring it to this version where it is older, if the user may."""
    timeout: Annotated[Seconds, Field(gt=0)] = 30.0
    """A transaction that takes longer is given up, and begun again later."""
    batch_events: Annotated[int, Field(ge=1, le=100_000)] = 5_000
    """So many events go into one transaction at most."""

    @model_validator(mode="after")
    def _one_password(self) -> Self:
        given = (self.password, self.password_file, self.password_callable)
        if sum(each is not None for each in given) > 1:
            raise ValueError("write one of password, password-file and password-callable")
        return self

    def store_options(self) -> StoreOptions:
        """With limits of time for all that a client waits for, where the URL has none of its own."""
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

    def _limits(self, kind: Database) -> dict[str, str]:
        if kind is Database.SQLITE:
            return {}
        seconds = str(max(1, round(self.timeout)))
        waits = {"read_timeout": seconds, "write_timeout": seconds} if kind is Database.MYSQL else {}
        return {"connect_timeout": _CONNECT_SECONDS, **waits}
