"""Datasets with their facets: what a statement read and wrote, and what a table is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.generated.base import DatasetFacet
from openlineage.client.generated.catalog_dataset import CatalogDatasetFacet
from openlineage.client.generated.dataset_type_dataset import DatasetTypeDatasetFacet
from openlineage.client.generated.dataset_version_dataset import DatasetVersionDatasetFacet
from openlineage.client.generated.input_statistics_input_dataset import InputStatisticsInputDatasetFacet
from openlineage.client.generated.lifecycle_state_change_dataset import (
    LifecycleStateChange,
    LifecycleStateChangeDatasetFacet,
)
from openlineage.client.generated.output_statistics_output_dataset import OutputStatisticsOutputDatasetFacet
from openlineage.client.generated.storage_dataset import StorageDatasetFacet

from headwater.events.identity.jdbc.dialects import DIALECTS
from headwater.events.jobs import CommitKind, DatasetRef, Input, NamedCatalog, Output, OverwriteScope, RangeStart
from headwater.events.names import CatalogId
from headwater.events.scalars import Format
from headwater.forwarders.openlineage.columns import KnownShape
from headwater.forwarders.openlineage.identifiers import Catalogs, DatasetName, stamped
from headwater.forwarders.openlineage.own_facets import (
    HeadwaterReadsInputDatasetFacet,
    HeadwaterTableDatasetFacet,
    HeadwaterWritesOutputDatasetFacet,
)

R = TypeVar("R", bound=DatasetRef)

_FILES: Final = {Format.PARQUET, Format.ORC, Format.AVRO, Format.CSV, Format.JSON, Format.TEXT, Format.XML}
_NO_STORAGE: Final = {Format.UNKNOWN, Format.OTHER, Format.JDBC, Format.KAFKA, Format.VIEW, Format.BINARY}
_METADATA_SERVICES: Final = {"hive", "http", "https", "arn", "unitycatalog", *(each.name for each in DIALECTS.values())}
"""What the address of a catalog begins with that keeps metadata, and no data: a server, or a database."""
_ADDING: Final = {CommitKind.APPEND, CommitKind.CREATE}
_SERVICE_AND_WAREHOUSE: Final = ";warehouse="
_DATABASE_AND_CATALOG: Final = (";catalog=", ";catalog-key=")


def named(refs: Iterable[R], catalogs: Catalogs) -> dict[DatasetName, list[R]]:
    """Return what has a name, by its name: one dataset can be read in two versions."""
    found: dict[DatasetName, list[R]] = {}
    for ref in refs:
        name = catalogs.name_of(ref.dataset, ref.table)
        if name is not None:
            found.setdefault(name, []).append(ref)
    return found


def unnamed(refs: Iterable[DatasetRef], catalogs: Catalogs) -> list[dict[str, str]] | None:
    """Return what is known of what has no name: an RDD, or a table of a catalog that isn't known."""
    texts = [_describe_unnamed(ref) for ref in refs if catalogs.name_of(ref.dataset, ref.table) is None]
    return texts or None


def _describe_unnamed(ref: DatasetRef) -> dict[str, str]:
    return {"table": str(ref.table)} if ref.table else {"opaque": ref.opaque or "nothing is known of it"}


def inputs_of(reads: Iterable[Input], shape: KnownShape) -> list[InputDataset]:
    """Return the inputs of a commit, each with the version that was read."""
    return [_input(name, group, shape) for name, group in named(reads, shape.catalogs).items()]


def _input(name: DatasetName, reads: Sequence[Input], shape: KnownShape) -> InputDataset:
    """Two versions of one dataset aren't said as one: the facet of our own has both."""
    facets = table_facets(reads[0], shape.catalogs)
    facets["schema"] = shape.input_schema(name)
    facets["version"] = _version({version_of(read.snapshot, read.version) for read in reads})
    only = reads[0] if len(reads) == 1 else None
    own = HeadwaterReadsInputDatasetFacet(reads=[_read(read) for read in reads])
    counts = _input_statistics(only) if only else None
    return InputDataset(
        *name, facets=stamped(facets), inputFacets=stamped({"inputStatistics": counts, "headwater_reads": own})
    )


def _read(read: Input) -> dict[str, object]:
    return {
        "mode": read.mode.value,
        **_place_in_history(read),
        **_texts(snapshot=read.snapshot, version=read.version, tag=read.tag),
        **({"since": _since(read.since)} if read.since else {}),
        **({"candidates": [str(candidate) for candidate in read.candidates]} if read.candidates else {}),
    }


def _since(since: RangeStart) -> dict[str, str]:
    return _texts(snapshot=since.snapshot, version=since.version)


def outputs_of(writes: Iterable[Output], shape: KnownShape) -> list[OutputDataset]:
    """Return the outputs of a commit, each with the version that was made."""
    return [_output(name, group, shape) for name, group in named(writes, shape.catalogs).items()]


def _output(name: DatasetName, writes: Sequence[Output], shape: KnownShape) -> OutputDataset:
    facets = table_facets(writes[0], shape.catalogs)
    facets["schema"] = shape.output_schema(name)
    facets["columnLineage"] = shape.column_lineage(name)
    facets["version"] = _version({version_of(write.snapshot, write.version) for write in writes})
    facets["lifecycleStateChange"] = _replacement(writes)
    only = writes[0] if len(writes) == 1 else None
    own = HeadwaterWritesOutputDatasetFacet(writes=[_write(write) for write in writes])
    counts = _output_statistics(only) if only else None
    return OutputDataset(
        *name, facets=stamped(facets), outputFacets=stamped({"outputStatistics": counts, "headwater_writes": own})
    )


def _write(write: Output) -> dict[str, object]:
    return {
        "commitKind": write.commit_kind.value,
        "replaced": write.replaced.value,
        **_place_in_history(write),
        **_texts(snapshot=write.snapshot, version=write.version, parent=write.parent, schemaId=write.schema_id),
        **({"candidates": [str(candidate) for candidate in write.candidates]} if write.candidates else {}),
    }


def _replacement(writes: Iterable[Output]) -> LifecycleStateChangeDatasetFacet | None:
    """All that was there before was replaced; on a branch that isn't the main one, the dataset stays what it is.

    CREATE TABLE AS SELECT replaces nothing: it adds to a table that it made, and CreateTable has a message of its own.
    """
    for write in writes:
        if write.main and write.replaced is OverwriteScope.ALL and write.commit_kind not in _ADDING:
            is_truncate = write.commit_kind is CommitKind.TRUNCATE
            return lifecycle(LifecycleStateChange.TRUNCATE if is_truncate else LifecycleStateChange.OVERWRITE)
    return None


def lifecycle(change: LifecycleStateChange) -> LifecycleStateChangeDatasetFacet:
    return LifecycleStateChangeDatasetFacet(change)


def _place_in_history(ref: DatasetRef) -> dict[str, object]:
    return {"main": ref.main, **_texts(branch=ref.branch)}


def version_of(snapshot: int | None, version: str | None) -> str | None:
    """Return the version as text: the text is the finer one, where a stream stopped within a version."""
    return version if version is not None or snapshot is None else str(snapshot)


def _version(versions: set[str | None]) -> DatasetVersionDatasetFacet | None:
    return version_facet(versions.pop()) if len(versions) == 1 else None


def version_facet(version: str | None) -> DatasetVersionDatasetFacet | None:
    return None if version is None else DatasetVersionDatasetFacet(version)


def _input_statistics(read: Input) -> InputStatisticsInputDatasetFacet | None:
    if read.rows is None and read.bytes is None:
        return None
    return InputStatisticsInputDatasetFacet(rowCount=read.rows, size=read.bytes)


def _output_statistics(write: Output) -> OutputStatisticsOutputDatasetFacet | None:
    if write.rows is None and write.bytes is None:
        return None
    return OutputStatisticsOutputDatasetFacet(rowCount=write.rows, size=write.bytes)


def table_facets(ref: DatasetRef, catalogs: Catalogs) -> dict[str, DatasetFacet | None]:
    """Return what a dataset is, whatever is done to it."""
    return {
        "symlinks": catalogs.symlinks(ref.dataset, ref.table),
        "catalog": catalog_facet(ref, catalogs.of(ref.table)),
        "storage": _storage(ref.format),
        "datasetType": _view_type() if ref.format is Format.VIEW else None,
        "headwater_table": HeadwaterTableDatasetFacet(
            table=str(ref.table) if ref.table else None,
            generation=None if ref.generation is None else str(ref.generation),
            format=None if ref.format is Format.UNKNOWN else ref.format.value,
        ),
    }


def _view_type() -> DatasetTypeDatasetFacet:
    return DatasetTypeDatasetFacet("VIEW")


def catalog_facet(ref: DatasetRef, named: NamedCatalog | None) -> CatalogDatasetFacet | None:
    """Return which catalog a table is in, and where that keeps its metadata and its data."""
    if ref.table is None or named is None:
        return None
    catalog = named.id
    service, mark, rest = _parts(catalog.location)
    is_service = bool(mark) or service.partition(":")[0] in _METADATA_SERVICES
    warehouse = named.warehouse or (rest if mark == _SERVICE_AND_WAREHOUSE else None)
    return CatalogDatasetFacet(
        framework=ref.format.value.lower() if ref.format.has_versions else catalog.type,
        type=_catalog_type(catalog, is_service=is_service),
        name=ref.table.catalog,
        metadataUri=service if is_service else None,
        warehouseUri=warehouse if is_service else service,
        source="spark",
        catalogProperties=None,
    )


def _parts(location: str) -> tuple[str, str, str]:
    """Return the address of a service or database, and what tells one catalog that it keeps from another."""
    for mark in (_SERVICE_AND_WAREHOUSE, *_DATABASE_AND_CATALOG):
        if mark in location:
            return location.partition(mark)
    return location, "", ""


def _catalog_type(catalog: CatalogId, *, is_service: bool) -> str:
    """Return the implementation. Iceberg's own three differ by what they point at: files, a database or a server."""
    if catalog.type != "iceberg":
        return catalog.type
    if not is_service:
        return "hadoop"
    return "rest" if catalog.location.startswith(("http://", "https://")) else "jdbc"


def _storage(format_: Format) -> StorageDatasetFacet | None:
    if format_ in _NO_STORAGE:
        return None
    name = format_.value.lower()
    is_file = format_ in _FILES
    return StorageDatasetFacet(storageLayer="file" if is_file else name, fileFormat=name if is_file else None)


def _texts(**values: int | str | None) -> dict[str, str]:
    return {key: str(value) for key, value in values.items() if value is not None}


def sources_of(outputs: Iterable[Output], catalogs: Catalogs) -> Mapping[DatasetName, set[int]]:
    """Return which inputs each output was made from, where that is known of all of them; else nothing."""
    found: dict[DatasetName, set[int]] = {}
    for name, writes in named(outputs, catalogs).items():
        for write in writes:
            if write.made_from is None:
                return {}
            found.setdefault(name, set()).update(write.made_from)
    return found
