"""What things are called: datasets by where they are, tables by what a catalog calls them, catalogs, jobs."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias
from uuid import UUID

from pydantic import AfterValidator, Field

from headwater.events.base import Model

Name: TypeAlias = Annotated[str, Field(min_length=1)]
Life: TypeAlias = Annotated[UUID | str, Field(union_mode="left_to_right")]
"""Which life of a table: ids start anew when it is dropped and made again. Iceberg and Delta give a UUID; Paimon the
creation time of its first schema; else the id of the CreateTable event, as text. A UUID in text form is that UUID."""

DEFAULT_JOB_NAMESPACE: Final = "default"


def _unless_default(namespace: str | None) -> str | None:
    return None if namespace == DEFAULT_JOB_NAMESPACE else namespace


class DatasetId(Model):
    """A physical table, topic or path by the OpenLineage naming rules: the same thing has the same id everywhere."""

    namespace: Name
    name: Name

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name.lstrip('/')}"


class TableName(Model):
    """What a catalog calls a table: an alias of a dataset. Nested namespaces stand in `database`, joined by dots,
    each part quoted as Spark quotes it when it holds a dot itself."""

    catalog: str
    database: str
    table: Name

    def __str__(self) -> str:
        return ".".join(part for part in (self.catalog, self.database, self.table) if part)


class CatalogId(Model):
    """A catalog by its type and what it points at (warehouse, metastore, URL); its name is only an alias."""

    type: Name
    location: str


class JobName(Model):
    """The name that lineage is kept under. No namespace stands for the default one, which is never spelled out: one
    job has one name."""

    namespace: Annotated[Name | None, AfterValidator(_unless_default)] = None
    name: Name

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
