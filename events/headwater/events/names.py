"""What things are called: datasets by where they are, tables by what a catalog calls them, catalogs, jobs."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias
from uuid import UUID

from pydantic import AfterValidator, Field

from headwater.events.base import Model
from headwater.events.marks import Identity
from headwater.events.scalars import IdentityString

Name: TypeAlias = Annotated[str, Field(min_length=1), Identity()]
Generation: TypeAlias = Annotated[UUID | str, Field(union_mode="left_to_right"), Identity()]
"""Tells a table from the one that was dropped before it under the same name: snapshot ids start anew with it. Iceberg
and Delta give a UUID, Paimon the creation time of its first schema; for other formats it is the id of the CreateTable
event, as text. A UUID in text form is that UUID."""

DEFAULT_JOB_NAMESPACE: Final = "default"
VALIDATION_JOB_NAMESPACE: Final = "headwater.validation"
"""Of jobs that run again to be compared with what they made. Questions leave them out unless asked for them."""


def _unless_default(namespace: str | None) -> str | None:
    return None if namespace == DEFAULT_JOB_NAMESPACE else namespace


class DatasetId(Model):
    """A physical table, topic or path by OpenLineage's naming rules: the same thing has the same id everywhere.

    >>> str(DatasetId(namespace="s3://lake", name="warehouse/orders"))
    's3://lake/warehouse/orders'
    """

    namespace: Name
    name: Name

    @property
    def short_name(self) -> str:
        """What a person calls it: the last two parts of a path, or all of another name.

        >>> DatasetId(namespace="s3://lake", name="w/landing/orders").short_name
        'landing/orders'
        """
        return "/".join(self.name.strip("/").split("/")[-2:]) or str(self)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name.lstrip('/')}"


class TableName(Model):
    """The name that a catalog has for a table: an alias of a dataset.

    Nested namespaces stand in `database`, joined by dots; a part that holds a dot is quoted as Spark quotes it.

    >>> str(TableName(catalog="lake", database="sales", table="orders"))
    'lake.sales.orders'
    """

    catalog: IdentityString
    database: IdentityString
    table: Name

    def __str__(self) -> str:
        return ".".join(part for part in (self.catalog, self.database, self.table) if part)


class CatalogId(Model):
    """A catalog by its type and what it points at (warehouse, metastore, URL); its name is only an alias.

    >>> CatalogId(type="hive", location="thrift://metastore:9083").type
    'hive'
    """

    type: Name
    location: IdentityString


class JobName(Model):
    """The name that a job's lineage is kept under.

    A job without a namespace is in the default one, which is never spelled out, so that one job has one name.

    >>> JobName(namespace="default", name="orders_etl") == JobName(name="orders_etl")
    True
    """

    namespace: Annotated[Name | None, AfterValidator(_unless_default)] = None
    name: Name

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
