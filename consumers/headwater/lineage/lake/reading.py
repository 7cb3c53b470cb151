"""Opens a lake to ask it: pyiceberg finds the tables' files, DuckDB reads them, the questions are those of any store.

Nothing is copied: a statement reads the columns that it names of the files whose statistics don't exclude its rows.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import URL
from typing_extensions import Self

from headwater.errors import ConfigurationError, HeadwaterError, TransientError
from headwater.lineage.lake.address import ICEBERG, LakeAddress
from headwater.lineage.lake.merging import ARROW_TYPES, VERSION, VERSION_PROPERTY, lake_tables, spark_type
from headwater.lineage.sql import METADATA
from headwater.lineage.sql.errors import StoreSchemaError
from headwater.lineage.store.options import StoreAddress
from headwater.lineage.store.store import Store
from headwater.plugins import extra_command

if TYPE_CHECKING:
    import duckdb

_NEEDED: Final = ("duckdb", "pyiceberg", "pyarrow")
_WORD: Final = re.compile(r"[a-z_]+")


class LakeTarget(StoreAddress):
    """The address of a lake among those of stores."""

    @classmethod
    def of(cls, address: LakeAddress) -> Self:
        return cls(URL.create(address.format, database=address.words.partition(":")[2]), "")

    @property
    def words(self) -> str:
        return f"{self.url.drivername}:{self.url.database}"


def open_lake(address: LakeAddress, properties: Mapping[str, str] | None = None) -> Store:
    """Open a lake. `properties` are those of the catalog beside pyiceberg's own configuration.

    Each connection sees each table as it was when the connection first used it. Raises a ConfigurationError if the
    catalog can't be opened, and a StoreSchemaError if there is no lake.
    """
    if address.format != ICEBERG:
        raise ConfigurationError(
            f"{address.words} is read by Spark alone: ask it in Python with a session that knows its catalog, by "
            f"Lineage.open({address.words!r}, spark=spark)"
        )
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigurationError(f"to read a lake store, {missing[0]} is missing: {extra_command('lake')}")
    from headwater.lineage.lake.dialect import duckdb_engine  # noqa: PLC0415 - DuckDB is an extra

    catalog = _Catalog(address, properties or {})
    catalog.check()
    return Store(duckdb_engine(_connect, catalog.prepare), LakeTarget.of(address))


def _connect() -> duckdb.DuckDBPyConnection:
    import duckdb  # noqa: PLC0415

    return duckdb.connect()


class _Catalog:
    """The tables of a lake, as pyiceberg finds them."""

    def __init__(self, address: LakeAddress, properties: Mapping[str, str]) -> None:
        from pyiceberg.catalog import load_catalog  # noqa: PLC0415 - an extra

        self._address = address
        try:
            self._catalog = load_catalog(address.catalog, **dict(properties))
        except Exception as e:  # whatever a catalog raises
            raise ConfigurationError(
                f"the Iceberg catalog {address.catalog} can't be opened: {type(e).__name__}: {e}; name it in "
                f"~/.pyiceberg.yaml or by PYICEBERG_CATALOG__{address.catalog.upper()}__URI and the like"
            ) from e

    def check(self) -> None:
        """Raise a StoreSchemaError unless there is a lake that this version knows."""
        found = self._load(next(iter(lake_tables()))).properties.get(VERSION_PROPERTY)
        if found != VERSION:
            raise StoreSchemaError(
                f"the tables of {self._address.words} have {VERSION_PROPERTY} = {found}, and this headwater knows "
                f"{VERSION}: install the headwater that made them"
            )

    def prepare(self, connection: duckdb.DuckDBPyConnection, statement: str) -> None:
        """Make the tables that a statement names known to a connection."""
        views = connection.execute("SELECT view_name FROM duckdb_views() WHERE temporary").fetchall()
        for name in ({*_WORD.findall(statement)} & {*METADATA.tables}) - {name for (name,) in views}:
            connection.register(name, self._content(name))

    def _content(self, name: str) -> Any:
        """Return a table's content as something that DuckDB reads."""
        import pyarrow as pa  # noqa: PLC0415

        columns = METADATA.tables[name].c
        schema = pa.schema([(column.name, getattr(pa, ARROW_TYPES[spark_type(column)])()) for column in columns])
        if name not in lake_tables():  # a database's own, of which a lake has none
            return schema.empty_table()
        try:
            return _files_of(self._load(name), schema)
        except HeadwaterError:
            raise
        except Exception as e:  # of a catalog or an object store
            raise TransientError(f"the table {name} of {self._address.words}: {type(e).__name__}: {e}") from e

    def _load(self, name: str) -> Any:
        from pyiceberg.exceptions import NoSuchTableError  # noqa: PLC0415

        try:
            return self._catalog.load_table((*self._address.namespace, name))
        except NoSuchTableError:
            raise StoreSchemaError(
                f"there is no lake store in {self._address.words} yet: `headwater pipeline run --store "
                f"{self._address.words}` makes one"
            ) from None


def _files_of(table: Any, schema: Any) -> Any:
    """Return a table's files as a data set, or its rows where files alone don't say which rows are deleted."""
    from pyarrow.dataset import dataset  # noqa: PLC0415
    from pyiceberg.io.pyarrow import PyArrowFileIO  # noqa: PLC0415

    scan = table.scan()
    tasks = list(scan.plan_files())
    if not tasks:
        return schema.empty_table()
    if any(task.delete_files for task in tasks) or not isinstance(table.io, PyArrowFileIO):
        return scan.to_arrow().cast(schema)
    places = [PyArrowFileIO.parse_location(task.file.file_path) for task in tasks]
    files = table.io.fs_by_scheme(places[0][0], places[0][1])
    return dataset([place for _, _, place in places], schema=schema, format="parquet", filesystem=files)
