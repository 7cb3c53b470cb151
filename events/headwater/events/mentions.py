"""The names that an event mentions: jobs, catalogs and datasets, each by all names that people use for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from headwater.events.base import Model
from headwater.events.catalog import CatalogContext, DatabaseName
from headwater.events.envelope import Event
from headwater.events.names import DatasetId, JobName, TableName


def name_pattern(text: str) -> re.Pattern[str]:
    """Read a name in which `*` stands for anything."""
    return re.compile(".*".join(map(re.escape, text.split("*"))), re.DOTALL)


def jobs_in(event: Event) -> Iterator[str]:
    """Yield the jobs that the event is of or about, and the parent: who asks for an application wants its steps."""
    for value in (event.job, getattr(event, "parent_job", None), getattr(event, "of_job", None)):
        if isinstance(value, JobName):
            yield from (value.name, str(value))


def datasets_in(value: Any) -> Iterator[str]:
    """Yield every dataset and table in it, by each name that people use: `c.d.t`, `d.t`, `t`, the dataset's own."""
    if isinstance(value, TableName):
        full = str(value)
        yield from (full, f"{value.database}.{value.table}", value.table)
    elif isinstance(value, DatasetId):
        yield from (str(value), value.name)
    else:
        for each in _below(value):
            yield from datasets_in(each)


def catalogs_in(value: Any) -> Iterator[str]:
    """Yield the names of all catalogs in it."""
    if isinstance(value, (TableName, DatabaseName)):
        yield value.catalog
    elif isinstance(value, CatalogContext):
        yield value.name
    else:
        for each in _below(value):
            yield from catalogs_in(each)


def _below(value: Any) -> Iterator[Any]:
    if isinstance(value, Model):
        for name in type(value).model_fields:
            yield getattr(value, name)
    elif isinstance(value, tuple):
        yield from value
