"""Whether catalogs are declared as they were declared first: their options about lineage are immutable."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from headwater.errors import HeadwaterError
from headwater.spi import CheckResult

_STEP: Final = "catalogs"
_SWITCH: Final = re.compile(r"spark\.sql\.catalog\.(?P<catalog>[^.]+)\.(?P<option>table-lineage|data-lineage)")
_URL: Final = "spark.headwater.jdbc."


def check_catalog_options(conf: Mapping[str, str]) -> Iterator[CheckResult]:
    """Compare the switches of catalogs with what the store has, where the driver writes to a store itself."""
    wanted = {(found["catalog"], found["option"]): value for found, value in _switches(conf)}
    options = {f"jdbc.{key[len(_URL) :]}": value for key, value in conf.items() if key.startswith(_URL)}
    if not wanted or "jdbc.url" not in options:
        return
    try:
        first = _declared_first(options)
    except HeadwaterError as e:
        yield CheckResult.warning(_STEP, f"what was declared first isn't known: {e}", "see to the store")
        return
    for (catalog, option), value in sorted(wanted.items()):
        holds = first.get((catalog, option), value)
        if holds != ("false" if value.strip().lower() == "false" else "true"):
            words = f"{option} of {catalog} is {value.strip()} here, and {holds} was declared first, which holds"
            yield CheckResult.error(_STEP, words, f"spark.sql.catalog.{catalog}.{option}={holds}, or another catalog")


def _switches(conf: Mapping[str, str]) -> Iterator[tuple[re.Match[str], str]]:
    for key, value in conf.items():
        found = _SWITCH.fullmatch(key)
        if found is not None:
            yield found, value


def _declared_first(options: Mapping[str, str]) -> dict[tuple[str, str], str]:
    from headwater.lineage.questions.gaps.options import load_switches  # noqa: PLC0415 - it imports SQLAlchemy
    from headwater.lineage.sql.errors import translate_errors  # noqa: PLC0415
    from headwater.lineage.store import StoreOptions, open_store  # noqa: PLC0415

    with (
        open_store(StoreOptions.of_catalog(options), readonly=True) as store,
        translate_errors(store.target.words),
        store.engine.connect() as connection,
    ):
        return {(each.catalog, each.name): each.value for each in load_switches(connection)}
