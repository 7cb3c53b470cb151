"""The options that say where a store is and who opens it, as Paimon PIP-5 names them.

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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pydantic import ConfigDict, Field, PrivateAttr, SecretStr, model_validator
from sqlalchemy import URL
from typing_extensions import Self

from headwater import plugins
from headwater.config import Config, from_environment, layered, read_config
from headwater.config.model import Keys
from headwater.errors import ConfigurationError
from headwater.lineage.lake.address import LakeAddress
from headwater.lineage.store.urls import MEMORY, SCHEMA, DatabaseKind, parse_url, printable_url

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
    """The options of a store. Neither `repr` nor error messages contain a secret."""

    model_config = ConfigDict(hide_input_in_errors=True, alias_generator=_key)

    lineage_meta: str = "jdbc"
    """Which implementation the store is: `jdbc`, `memory`, or somebody's entry point of `headwater.lineage_meta`."""
    jdbc_url: SecretStr | None = None
    """`jdbc:postgresql://host/database`, `jdbc:mysql://…`, `jdbc:sqlite:path`, or a SQLAlchemy URL."""
    jdbc_driver: str | None = None
    """Java's class of the driver. It has to fit the URL, and says which database it is where the URL doesn't."""
    jdbc_username: str | None = None
    """Goes before the URL's user."""
    jdbc_password: SecretStr | None = None
    """The password."""
    jdbc_password_file: Path | None = None
    """A file with the password, read at each connection."""
    jdbc_password_callable: str | Callable[[], str] | None = Field(default=None, repr=False)
    """`package.module:function` that returns the password, called at each connection: for tokens that expire."""
    jdbc_database: str = Field(default="paimon", pattern=r"^[A-Za-z_][A-Za-z0-9_$]{0,62}$")
    """The schema or database that the PIP-5 compatible views are in."""
    _suffix: str = PrivateAttr(default="")

    @model_validator(mode="after")
    def _one_password(self) -> Self:
        given = (self.jdbc_password, self.jdbc_password_file, self.jdbc_password_callable)
        if sum(value is not None for value in given) > 1:
            raise ValueError("write one of jdbc.password-file, jdbc.password-callable and jdbc.password")
        return self

    @classmethod
    def at(cls, url: str, *, username: str | None = None, password: Callable[[], str] | None = None) -> StoreOptions:
        """Build options in code. `password` is called at each connect."""
        return cls(jdbc_url=SecretStr(url), jdbc_username=username, jdbc_password_callable=password)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> StoreOptions:
        """Read options that all belong to the store."""
        return read_config(cls, options)

    @classmethod
    def of_catalog(cls, options: Mapping[str, str], printable_url: str = "") -> StoreOptions:
        """Read the store's options from those of a catalog. Options of others are ignored."""
        theirs = _has_other_jdbc(options)
        ours = {key: value for key, value in options.items() if _is_ours(key, theirs=theirs)}
        return read_config(cls, ours, shown=printable_url)

    @classmethod
    def from_spark_conf(cls, conf: Mapping[str, str], catalog: str) -> StoreOptions:
        """Read the options below `spark.sql.catalog.<catalog>.`."""
        prefix = f"{CATALOGS}{catalog}."
        options = {key[len(prefix) :]: value for key, value in conf.items() if key.startswith(prefix)}
        return cls.of_catalog(options, prefix)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], url: str | None = None) -> StoreOptions:
        """Read HEADWATER_STORE and HEADWATER_STORE_JDBC_USERNAME …. The parameter `url` takes precedence."""
        named = from_environment(cls, environment, f"{VARIABLE}_")
        return read_config(cls, layered(named, {"jdbc.url": environment.get(VARIABLE)}, {"jdbc.url": url}))

    def beside(self, suffix: str) -> StoreOptions:
        """Return the options of other tables beside the store's: a schema, database or file whose name ends so."""
        other = self.model_copy()
        other._suffix = suffix  # noqa: SLF001 - a copy of our own
        return other

    @property
    def lake(self) -> LakeAddress | None:
        """The address of a lake store, if the options describe one."""
        text = "" if self.jdbc_url is None else self.jdbc_url.get_secret_value()
        return LakeAddress.parse(text) if LakeAddress.is_lake(text) else None

    @property
    def target(self) -> StoreAddress:
        """The address that the options describe. Raises a ConfigurationError for a lake store, which is no database."""
        lake = self.lake
        if lake is not None:
            raise ConfigurationError(
                f"{lake.words} is a lake store, and this needs a database: name one by postgresql://host/database or "
                "the like"
            )
        address = self._address()
        return address.beside(self._suffix) if self._suffix else address

    def _address(self) -> StoreAddress:
        if self.jdbc_url is None:
            raise ConfigurationError("jdbc.url is missing: set it to the address of the store")
        url = parse_url(self.jdbc_url.get_secret_value(), self.jdbc_driver)
        if self.jdbc_username is not None:
            url = url.set(username=self.jdbc_username)
        password = self._password()
        if password is not None and url.password is not None:
            raise ConfigurationError("jdbc.url and another setting both have a password")
        kept = url.password
        if password is None and kept is not None:
            password = lambda: kept  # noqa: E731 - as short as can be
        return StoreAddress(
            url._replace(password=None), self.jdbc_database, password
        )  # `set` takes None for nothing said

    def _password(self) -> Callable[[], str] | None:
        if self.jdbc_password is not None:
            return self.jdbc_password.get_secret_value
        if self.jdbc_password_file is not None:
            return _reading(self.jdbc_password_file)
        source = self.jdbc_password_callable
        return _wrap_password(plugins.load(PASSWORDS, source) if isinstance(source, str) else source)


@dataclass(frozen=True)
class StoreAddress:
    """The address of a store, with its password. `repr` and `words` contain no secret."""

    url: URL
    """The URL without password. Printed forms omit its parameters, too."""
    database: str
    """Where the PIP-5 compatible views are."""
    password: Callable[[], str] | None = field(default=None, repr=False)
    schema: str = SCHEMA
    """The schema of the tables on PostgreSQL."""

    def beside(self, suffix: str) -> StoreAddress:
        """Return the address of other tables beside these: a schema, database or file whose name ends so."""
        if self.kind is DatabaseKind.POSTGRESQL:
            return replace(self, schema=self.schema + suffix)
        if self.url.database is None:
            raise ConfigurationError(f"{MEMORY} has nothing beside it: give the store a file")
        return replace(self, url=self.url.set(database=self.url.database + suffix))

    def __repr__(self) -> str:
        return f"Target({self.words}, {self.database})"

    @property
    def kind(self) -> DatabaseKind:
        return DatabaseKind(self.url.drivername)

    @property
    def words(self) -> str:
        """The address as it is printed."""
        return printable_url(self.url)


def _is_ours(key: str, *, theirs: bool) -> bool:
    """Accept our keys and misspellings of them, which are errors. If the catalog itself is kept by JDBC, other `jdbc.`
    keys are its own."""
    known = Keys.of(StoreOptions).fields
    if key in known:
        return True
    is_near = _letters_only(key) in {_letters_only(option) for option in known}
    return is_near or (key.startswith("jdbc.") and not theirs)


def _has_other_jdbc(options: Mapping[str, str]) -> bool:
    kept = {options.get("type", ""), options.get("metastore", ""), options.get("catalog-impl", "").rpartition(".")[2]}
    return bool(kept & {"jdbc", "JdbcCatalog"})


def _letters_only(key: str) -> str:
    return re.sub(r"[^a-z]", "", key.lower())


def _reading(path: Path) -> Callable[[], str]:
    def read() -> str:
        try:
            return path.expanduser().read_text("utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as e:
            words = e.strerror if isinstance(e, OSError) else "it isn't UTF-8"
            raise ConfigurationError(f"jdbc.password-file: {path} can't be read: {words}") from None

    return read


def _wrap_password(source: Any) -> Callable[[], str] | None:
    """Wrap a password function. What it raises or returns is never repeated, because it may be the secret."""
    if source is None:
        return None
    if not callable(source):
        raise ConfigurationError("jdbc.password-callable has to be a function without arguments")

    def ask() -> str:
        try:
            given = source()
        except Exception as e:  # noqa: BLE001 - somebody else's code can fail in any way
            raise ConfigurationError(f"jdbc.password-callable failed: {type(e).__name__}") from None
        if not isinstance(given, str):
            raise ConfigurationError(f"jdbc.password-callable gave {type(given).__name__}, and not a text")
        return given

    return ask
