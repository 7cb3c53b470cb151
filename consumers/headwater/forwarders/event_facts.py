"""What forwarders tell of events in the same way: whether DDL took effect, formats of catalogs, properties in words.

The versions that a commit read and made are such words, for targets that have none for a version of a dataset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from headwater.events.catalog import CatalogContext, CatalogModification, ModificationEffect
from headwater.events.envelope import Event
from headwater.events.jobs import DatasetRef, Input, JobStarted, Output, ReadMode
from headwater.events.scalars import Format

_CATALOG_FORMATS: Final = {
    "iceberg": Format.ICEBERG,
    "nessie": Format.ICEBERG,
    "paimon": Format.PAIMON,
    "hudi": Format.HUDI,
    "hive": Format.HIVE,
}
"""By the identifier of a catalog's factory."""


def may_be_without_effect(event: Event) -> bool:
    """Return whether the event is of DDL that may not have taken effect: targets aren't told of it."""
    return isinstance(event, CatalogModification) and event.effect is not ModificationEffect.APPLIED


def catalog_format(context: CatalogContext) -> Format | None:
    """Return the format of all tables of a catalog, None if it can have tables of several."""
    return _CATALOG_FORMATS.get(context.factory or "")


def known_texts(properties: Mapping[str, object]) -> dict[str, str]:
    """Return those properties whose values are known, as texts."""
    return {key: str(value) for key, value in properties.items() if value is not None and value != ""}


def application_properties(event: JobStarted) -> dict[str, str]:
    """Return what an application runs on and by whom, and its tags."""
    spark = event.spark
    properties = {
        "spark": spark and spark.version,
        "master": spark and spark.master,
        "python": spark and spark.python,
        "code_version": event.code_version,
        "user": event.user,
    }
    return {**{f"tag.{key}": text for key, text in event.tags.items()}, **known_texts(properties)}


def read_version(read: Input) -> str:
    """Return which version was read: `snapshot 7`, or `changes after 5 up to snapshot 9`."""
    version = _version(read, read.snapshot, read.version, read.candidates)
    if read.mode is not ReadMode.CHANGES:
        return version
    since = read.since and (read.since.version if read.since.snapshot is None else read.since.snapshot)
    return f"changes up to {version}" if since is None else f"changes after {since} up to {version}"


def made_version(made: Output) -> str:
    """Return which version was made, and on which one: `snapshot 12 on 11`."""
    version = _version(made, made.snapshot, made.version, made.candidates)
    return version if made.parent is None else f"{version} on {made.parent}"


def _version(ref: DatasetRef, snapshot: int | None, version: str | None, candidates: Sequence[int]) -> str:
    """Return a version in words. One of several that may be it is never told as the one."""
    if snapshot is not None:
        text = f"snapshot {snapshot}"
    elif version is not None:
        text = f"version {version}"
    elif candidates:
        text = f"one of the snapshots {', '.join(map(str, candidates))}"
    else:
        text = "version unknown"
    return text if ref.branch is None else f"{text} of branch {ref.branch}"
