"""Finds out where a table is and which format it has, and reads its log."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import Any, Final

from headwater.consumers.reconcile import delta, hudi, iceberg, paimon
from headwater.consumers.reconcile.files import LogFiles, open_files
from headwater.consumers.reconcile.model import TableLog, TableLogError
from headwater.errors import ConfigurationError
from headwater.events.identity.hosts import is_loopback, normal_host
from headwater.events.identity.paths import location_of
from headwater.events.names import DatasetId, TableName
from headwater.plugins import extra_command

_READERS: Final[tuple[Callable[[LogFiles], TableLog | None], ...]] = (
    iceberg.read_log,
    delta.read_log,
    hudi.read_log,
    paimon.read_log,
)
FORMATS: Final = ("DELTA", "HUDI", "ICEBERG", "PAIMON")
"""The formats whose tables keep a log of their commits."""
CatalogSettings = Mapping[str, Mapping[str, str]]
"""Properties of Iceberg catalogs for pyiceberg, by the catalog's name."""


def read_table_log(
    dataset: DatasetId, names: tuple[TableName, ...], places: Mapping[str, str], catalogs: CatalogSettings
) -> TableLog:
    """Read the log of a dataset. `places` say where the files of a namespace are; an Iceberg table that one of
    `catalogs` has is read as that catalog says. Raises a TableLogError where there is no table."""
    location = location_in(dataset, places)
    files = open_files(location)
    try:
        for name in names:
            if name.catalog in catalogs:
                return _from_catalog(location, name, catalogs[name.catalog], files)
        for read in _READERS:
            found = read(files)
            if found is not None:
                return found
    except OSError as error:
        raise TableLogError(f"the log in {location} can't be read: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise TableLogError(f"the log in {location} isn't as its format has it: {error!r}") from error
    raise TableLogError(
        f"there is no log in {location}: the table was dropped, or its files are elsewhere (--place NAMESPACE=URI)"
    )


def location_in(dataset: DatasetId, places: Mapping[str, str]) -> str:
    """Return where a dataset's files are, as this machine reaches them."""
    if dataset.namespace in places:
        return f"{places[dataset.namespace].rstrip('/')}/{dataset.name.lstrip('/')}"
    scheme, colon, rest = dataset.namespace.partition("://")
    if scheme == "file" or not colon:
        host = rest or dataset.namespace.partition(":")[2]
        own = normal_host(socket.gethostname())
        if host and host not in {own, own.partition(".")[0], socket.getfqdn().lower()} and not is_loopback(host):
            raise TableLogError(
                f"{dataset} is on {host}: run this there, or say where its files are by --place {dataset.namespace}=URI"
            )
        return dataset.name
    return location_of(dataset)


def _from_catalog(location: str, name: TableName, properties: Mapping[str, str], files: LogFiles) -> TableLog:
    try:
        from pyiceberg.catalog import load_catalog  # noqa: PLC0415 - an extra
        from pyiceberg.exceptions import NoSuchTableError  # noqa: PLC0415
    except ImportError:
        message = f"to ask an Iceberg catalog, install pyiceberg: {extra_command('reconcile-iceberg')}"
        raise ConfigurationError(message) from None
    try:
        table: Any = load_catalog(name.catalog, **properties).load_table((*name.database.split("."), name.table))
    except NoSuchTableError as error:
        raise TableLogError(f"the catalog {name.catalog} has no table {name.database}.{name.table}") from error
    except Exception as error:
        raise TableLogError(f"the catalog {name.catalog} didn't answer: {error}") from error
    file = str(table.metadata_location).rpartition("/metadata/")[2]
    found = iceberg.read_log(files, f"metadata/{file}")
    if found is None:
        raise TableLogError(f"there is no metadata in {location}, where the catalog {name.catalog} has the table")
    return found
