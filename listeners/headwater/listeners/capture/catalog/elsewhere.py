"""Tables of Spark's own catalog whose rows are in another system: CREATE TABLE … USING jdbc, or kafka."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from headwater.events import DatasetId, Table
from headwater.events.identity import IdentityError, Site, dataset_of_source
from headwater.listeners.capture.formats.jdbc import places as jdbc
from headwater.listeners.capture.formats.kafka import sources as kafka
from headwater.listeners.capture.formats.relations import system_of

OPTION: Final = "option."
"""As Spark puts options among the properties of a table of the first kind."""
_TOLD: Final[Mapping[str, Callable[[Mapping[str, str]], dict[str, str]]]] = {
    "jdbc": jdbc.told_of_table,
    "kafka": kafka.told_of_table,
}


def told_options(provider: str | None, options: Mapping[str, str]) -> Mapping[str, str]:
    """Those of a table's options that may be told."""
    system = system_of(provider)
    return options if system is None else _TOLD[system](options)


def dataset_elsewhere(table: Table, site: Site) -> DatasetId | None:
    """The dataset that the options of such a table name; None where they name none, or several."""
    system = system_of(table.provider)
    options = {k.removeprefix(OPTION): text for k, text in table.properties.items() if k.startswith(OPTION)}
    try:
        found = dataset_of_source(system or "", options, site).datasets
    except IdentityError:
        return None
    return found[0] if len(found) == 1 else None
