"""What says where a store is and who opens it: Paimon PIP-5's options, wherever they are written.

    lineage-meta = jdbc
    jdbc.url = jdbc:postgresql://host:5432/lineage
    jdbc.driver = org.postgresql.Driver
    jdbc.username = …
    jdbc.password = …         or jdbc.password-file = path, or jdbc.password-callable = package.module:function
    jdbc.database = paimon

Passwords are asked for anew at each connection where a file or a function gives them, and never shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import ConfigDict, Field, SecretStr, model_validator
from sqlalchemy import URL
from typing_extensions import Self

from headwater import plugins
from headwater.config import Config, from_environment, layered, read_config
from headwater.config.model import Keys
from headwater.errors import ConfigurationError
from headwater.lineage.store.urls import Database, shown, url_of

CATALOGS: Final = "spark.sql.catalog."
VARIABLE: Final = "HEADWATER_STORE"
"""The environment's `jdbc.url`; the other options are HEADWATER_STORE_JDBC_PASSWORD_FILE and the like."""
PASSWORDS: Final = "headwater.passwords"
"""The group of entry points that names functions which give a password."""


def _key(name: str) -> str:
    """The option that a field is."""
    if name == "lineage_meta":
        return "lineage-meta"
    section, _, rest = name.partition("_")
    return f"{section}.{rest.replace('_', '-')}"


class StoreOptions(Config):
    """Frozen, checked, and without a secret in its words."""

    model_config = ConfigDict(hide_input_in_errors=True, alias_generator=_key)

    lineage_meta: str = "jdbc"
    jdbc_url: SecretStr | None = None
    jdbc_driver: str | None = None
    jdbc_username: str | None = None
    jdbc_password: SecretStr | None = None
    jdbc_password_file: Path | None = None
    jdbc_password_callable: str | Callable[[], str] | None = Field(default=None, repr=False)
    jdbc_database: str = Field(default="paimon", pattern=r"^[A-Za-z_][A-Za-z0-9_$]{0,62}$")

    @model_validator(mode="after")
    def _one_password(self) -> Self:
        given = (self.jdbc_password, self.jdbc_password_file, self.jdbc_password_callable)
        if sum(each is not None for each in given) > 1:
            raise ValueError("write one of jdbc.password, jdbc.password-file and jdbc.password-callable")
        return self

    @classmethod
    def at(cls, url: str, *, username: str | None = None, password: Callable[[], str] | None = None) -> StoreOptions:
        """What a program knows by itself; `password` is asked at each connection."""
        return cls(jdbc_url=SecretStr(url), jdbc_username=username, jdbc_password_callable=password)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> StoreOptions:
        """Of options that are all the store's."""
        return read_config(cls, options)

    @classmethod
    def of_catalog(cls, options: Mapping[str, str], shown: str = "") -> StoreOptions:
        """Of a catalog's options, as `CREATE CATALOG` has them: what isn't the store's is let be."""
        theirs = _has_other_jdbc(options)
        ours = {key: value for key, value in options.items() if _is_ours(key, theirs=theirs)}
        return read_config(cls, ours, shown=shown)

    @classmethod
    def from_spark_conf(cls, conf: Mapping[str, str], catalog: str) -> StoreOptions:
        """Of what stands below `spark.sql.catalog.<catalog>.`"""
        prefix = f"{CATALOGS}{catalog}."
        options = {key[len(prefix) :]: value for key, value in conf.items() if key.startswith(prefix)}
        return cls.of_catalog(options, prefix)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], url: str | None = None) -> StoreOptions:
        """Of HEADWATER_STORE and HEADWATER_STORE_JDBC_USERNAME …; a URL that is given goes before theirs."""
        named = from_environment(cls, environment, f"{VARIABLE}_")
        return read_config(cls, layered(named, {"jdbc.url": environment.get(VARIABLE)}, {"jdbc.url": url}))

    @property
    def target(self) -> Target:
        """Where that is."""
        if self.jdbc_url is None:
            raise ConfigurationError("jdbc.url isn't there, and has to be: it says where the store is")
        url = url_of(self.jdbc_url.get_secret_value(), self.jdbc_driver)
        if self.jdbc_username is not None:
            url = url.set(username=self.jdbc_username)
        password = self._password()
        if password is not None and url.password is not None:
            raise ConfigurationError("there is a password in jdbc.url, and another beside it: remove one")
        kept = url.password
        if password is None and kept is not None:
            password = lambda: kept  # noqa: E731 - as short as can be
        return Target(url._replace(password=None), self.jdbc_database, password)  # `set` takes None for nothing said

    def _password(self) -> Callable[[], str] | None:
        if self.jdbc_password is not None:
            return self.jdbc_password.get_secret_value
        if self.jdbc_password_file is not None:
            return _reading(self.jdbc_password_file)
        source = self.jdbc_password_callable
        return _checked(plugins.load(PASSWORDS, source) if isinstance(source, str) else source)


@dataclass(frozen=True)
class Target:
    """A database, and how to get into it. There is no secret in its words."""

    url: URL
    """Without its password, and without the parameters where it is printed."""
    database: str
    """Where the seed-shaped views are."""
    password: Callable[[], str] | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"Target({self.words}, {self.database})"

    @property
    def kind(self) -> Database:
        return Database(self.url.drivername)

    @property
    def words(self) -> str:
        """As it is printed."""
        return shown(self.url)


def _is_ours(key: str, *, theirs: bool) -> bool:
    """Those that are one, and those that are nearly one, which is a fault. Where the catalog itself is kept by JDBC
    unknown keys of jdbc. are its own."""
    known = Keys.of(StoreOptions).fields
    if key in known:
        return True
    is_near = _plain(key) in {_plain(each) for each in known}
    return is_near or (key.startswith("jdbc.") and not theirs)


def _has_other_jdbc(options: Mapping[str, str]) -> bool:
    kept = {options.get("type", ""), options.get("metastore", ""), options.get("catalog-impl", "").rpartition(".")[2]}
    return bool(kept & {"jdbc", "JdbcCatalog"})


def _plain(key: str) -> str:
    return re.sub(r"[^a-z]", "", key.lower())


def _reading(path: Path) -> Callable[[], str]:
    def read() -> str:
        try:
            return path.expanduser().read_text("utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as e:
            words = e.strerror if isinstance(e, OSError) else "it isn't UTF-8"
            raise ConfigurationError(f"jdbc.password-file: {path} can't be read: {words}") from None

    return read


def _checked(source: Any) -> Callable[[], str] | None:
    """What a function of somebody else's raises or gives is never in our words: it may be the secret."""
    if source is None:
        return None
    if not callable(source):
        raise ConfigurationError("jdbc.password-callable isn't a function without arguments that gives the password")

    def ask() -> str:
        try:
            given = source()
        except Exception as e:  # noqa: BLE001 - somebody else's code can fail in any way
            raise ConfigurationError(f"jdbc.password-callable failed: {type(e).__name__}") from None
        if not isinstance(given, str):
            raise ConfigurationError(f"jdbc.password-callable gave {type(given).__name__}, and not a text")
        return given

    return ask
