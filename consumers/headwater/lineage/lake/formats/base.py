"""What a lake store needs to know of a table format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Protocol

from headwater.errors import ConfigurationError
from headwater.lineage.lake.address import LakeAddress


class SqlSession(Protocol):
    """A Spark session, as far as it is used here."""

    @property
    def conf(self) -> Any: ...

    def sql(self, sqlQuery: str) -> Any: ...  # noqa: N803 - as Spark calls it


class LakeFormat(ABC):
    """The statements of one table format. It keeps nothing, so any thread may use it."""

    title: ClassVar[str]
    """The format's name as people write it."""
    extensions: ClassVar[str]
    """The class for `spark.sql.extensions`, by which Spark knows the format's statements."""
    catalog_class: ClassVar[str]
    """The class of a catalog of Spark with such tables."""
    packages: ClassVar[Mapping[str, str]]
    """The package of Maven for each line of Spark."""
    conflicts: ClassVar[Sequence[str]]
    """What an exception is called where somebody else has changed a table meanwhile, or nobody knows whether a commit
    was made. Each is part of a class's name."""

    def package(self, version: str) -> str:
        """Return the package of Maven for a version of Spark, or raise a ConfigurationError if none is known."""
        found = self.packages.get(".".join(version.split(".")[:2]))
        if found is None:
            raise ConfigurationError(
                f"there is no {self.title} that this headwater knows for Spark {version}: use Spark "
                f"{', '.join(self.packages)}, or name the package by --conf spark.jars.packages=…"
            )
        return found

    @abstractmethod
    def clauses(self, properties: Mapping[str, str]) -> str:
        """Return what stands behind the columns of CREATE TABLE."""

    @abstractmethod
    def newest_version(self, session: SqlSession, table: str) -> int | None:
        """Return the version of a table as it is now, or None if nothing was written into it."""

    def at_version(self, table: str, version: int) -> str:
        """Return what stands behind FROM for a table as it was in a version."""
        return f"{table} VERSION AS OF {version}"

    @abstractmethod
    def compact(self, session: SqlSession, address: LakeAddress, name: str, sort: str | None, smallest: int) -> int:
        """Rewrite a table's small files if there are as many as `smallest`, sorted by a column if one is named. Return
        how many files were rewritten."""

    @abstractmethod
    def expire(self, session: SqlSession, address: LakeAddress, name: str, before: datetime, retained: int) -> int:
        """Remove what only versions before a time need, but for the newest versions. Return how many files went."""

    def check_session(self, session: SqlSession, address: LakeAddress) -> None:
        """Raise a ConfigurationError if a session can't write such tables."""
        catalog = f"spark.sql.catalog.{address.catalog}"
        if session.conf.get(catalog, None) is None:
            raise ConfigurationError(
                f"{catalog} isn't set, so Spark doesn't know the catalog {address.catalog}: give it --conf "
                f"{catalog}={self.catalog_class}, and what else the catalog needs"
            )
        if self.extensions.rpartition(".")[2] not in (session.conf.get("spark.sql.extensions", "") or ""):
            raise ConfigurationError(
                f"spark.sql.extensions lacks that of {self.title}, by which Spark knows its statements: give it --conf "
                f"spark.sql.extensions={self.extensions}"
            )


def text_of_properties(properties: Mapping[str, str]) -> str:
    """Return the clause TBLPROPERTIES."""
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    return f"TBLPROPERTIES ({listed})"
