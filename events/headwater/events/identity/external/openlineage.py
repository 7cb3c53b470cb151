"""OpenLineage: a dataset by its location, its names in catalogs as symlinks, its snapshot as a text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypedDict

from headwater.events.identity.external.plain import plain_name
from headwater.events.names import DatasetId


class Symlink(TypedDict):
    """An entry of `symlinks.identifiers`."""

    namespace: str
    name: str
    type: Literal["TABLE"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLineageName:
    namespace: str
    name: str
    aliases: tuple[tuple[str, str], ...] = ()

    @property
    def symlinks(self) -> list[Symlink]:
        """For the `symlinks` facet. They name the same table: a consumer must never count it twice."""
        return [Symlink(namespace=namespace, name=name, type="TABLE") for namespace, name in self.aliases]


def openlineage_name(
    dataset: DatasetId, aliases: Iterable[DatasetId | None] = (), *, local_host: str | None = None
) -> OpenLineageName:
    """`local_host`: files on that host are in namespace `file`, as other producers on it write them."""
    own = _pair(dataset, local_host)
    others = sorted({_pair(alias, local_host) for alias in aliases if alias is not None} - {own})
    return OpenLineageName(namespace=own[0], name=own[1], aliases=tuple(others))


def dataset_version(snapshot: int | None) -> str | None:
    """`version.datasetVersion`: for inputs the snapshot that was read, for outputs the one that was made."""
    return None if snapshot is None else str(snapshot)


def _pair(dataset: DatasetId, local_host: str | None) -> tuple[str, str]:
    namespace = dataset.namespace
    if local_host is not None and namespace == f"file://{local_host}":
        namespace = "file"
    elif local_host is not None and namespace.startswith(f"file://{local_host}/"):
        namespace = "file:" + namespace.removeprefix(f"file://{local_host}")
    return namespace, plain_name(dataset)
