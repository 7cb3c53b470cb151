"""How headwater's names and ids are written in OpenLineage: the same for the same event, whenever it is sent.

What a dataset is called in OpenLineage: by its place, and by the names that catalogs have for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

from openlineage.client.event_v2 import Job
from openlineage.client.generated.base import BaseFacet, JobFacet
from openlineage.client.generated.symlinks_dataset import Identifier, SymlinksDatasetFacet
from openlineage.client.uuid import generate_static_uuid

from headwater.events.barriers import millis_of
from headwater.events.envelope import EventId
from headwater.events.jobs import NamedCatalog
from headwater.events.names import DEFAULT_JOB_NAMESPACE, CatalogId, DatasetId, JobName, TableName
from headwater.events.scalars import EPOCH


class DatasetName(NamedTuple):
    """Namespace and name by OpenLineage's rules."""

    namespace: str
    name: str


def place_name(dataset: DatasetId) -> DatasetName:
    """Return the name by place, which a DatasetId has already."""
    return DatasetName(dataset.namespace, dataset.name)


def catalog_name(table: TableName, catalog: CatalogId) -> DatasetName:
    """Return what the table is called in its catalog: a symlink of the place, or all that is known of a view.

    >>> orders = TableName(catalog="glue", database="sales", table="orders")
    >>> catalog_name(orders, CatalogId(type="glue", location="arn:aws:glue:eu-west-1:123456789012")).name
    'table/sales/orders'
    """
    if catalog.type == "glue":
        return DatasetName(catalog.location, f"table/{table.database}/{table.table}")
    if catalog.type == "unity":
        server, _, own_name = catalog.location.rpartition("/")
        return DatasetName(server or catalog.location, ".".join(filter(None, (own_name, table.database, table.table))))
    return DatasetName(catalog.location, ".".join(filter(None, (table.database, table.table))))


class Catalogs:
    """The catalogs whose names an event uses."""

    def __init__(self, catalogs: Iterable[NamedCatalog]) -> None:
        self._catalogs = {catalog.name: catalog for catalog in catalogs}

    def of(self, table: TableName | None) -> NamedCatalog | None:
        """Return the catalog of the table, where what it points at is known."""
        return None if table is None else self._catalogs.get(table.catalog)

    def id_of(self, table: TableName | None) -> CatalogId | None:
        """Return what the catalog of the table points at, where that is known."""
        found = self.of(table)
        return None if found is None else found.id

    def name_of(self, dataset: DatasetId | None, table: TableName | None) -> DatasetName | None:
        """Return the name by place, else by catalog; None for what has no name."""
        return self.alias_of(table) if dataset is None else place_name(dataset)

    def alias_of(self, table: TableName | None) -> DatasetName | None:
        """Return the name by catalog."""
        catalog = self.id_of(table)
        return None if table is None or catalog is None else catalog_name(table, catalog)

    def symlinks(self, dataset: DatasetId | None, table: TableName | None) -> SymlinksDatasetFacet | None:
        """Return the name by catalog as a symlink of the name by place."""
        alias = self.alias_of(table)
        if dataset is None or alias is None or alias == place_name(dataset):
            return None
        return symlinks_to([Identifier(*alias, type="TABLE")])


def symlinks_to(identifiers: list[Identifier]) -> SymlinksDatasetFacet:
    """Return the facet of these other names."""
    return SymlinksDatasetFacet(identifiers=identifiers)


K = TypeVar("K")
T = TypeVar("T")
F = TypeVar("F", bound=BaseFacet)

PRODUCER_URI: Final = "urn:headwater:forwarders:openlineage"
"""Who made the messages: `producer` of each event and facet."""
_PRODUCER_FIELD: Final = "_producer"


def present(values: Mapping[K, T | None]) -> dict[K, T]:
    """Return the values that there are."""
    return {key: value for key, value in values.items() if value is not None}


def stamped(facets: Mapping[str, F | None]) -> dict[str, F]:
    """Return the facets that there are, each with its producer.

    It is set here because type checkers don't agree on what the client's argument for it is called.
    """
    there = present(facets)
    for facet in there.values():
        setattr(facet, _PRODUCER_FIELD, PRODUCER_URI)
    return there


def event_time(time: datetime) -> str:
    """Return a time with six digits and `Z`."""
    return time.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def job_namespace(job: JobName) -> str:
    """Return the job's namespace, which OpenLineage wants spelled out."""
    return job.namespace or DEFAULT_JOB_NAMESPACE


def job_of(job: JobName, facets: dict[str, JobFacet | None]) -> Job:
    """Return the job with its facets."""
    return Job(namespace=job_namespace(job), name=job.name, facets=stamped(facets))


def uuid_of(text: str | None) -> str | None:
    """Return the text as OpenLineage wants run ids, None if it is no UUID."""
    try:
        return None if text is None else str(UUID(text))
    except ValueError:
        return None


def commit_run(job: JobName, incarnation: UUID, barrier: int) -> str:
    """Return the id of a batch commit's own run."""
    instant = datetime.fromtimestamp(max(millis_of(barrier), 0) / 1000, timezone.utc)
    return _run_id(instant, "commit", job_namespace(job), job.name, str(incarnation), str(barrier))


def failure_run(time: datetime, event: EventId) -> str:
    """Return the id of the run of its own that a failed statement is."""
    return _run_id(max(time, EPOCH), "failure", str(event))


def _run_id(instant: datetime, *parts: str) -> str:
    """A UUID that sorts by time; its other bits are a hash of the parts."""
    return str(generate_static_uuid(instant, "\0".join(parts).encode("utf-8", "surrogatepass")))
