"""Limits of an answer that no traversal meets: gaps, changes with unknown effect, lineage that is switched off."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import Connection, case, literal, null, select, union_all

from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.traversal.limits import LimitCollector
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.switches import OFF, SWITCHES
from headwater.lineage.sql.key_lookup import is_among, keys_for
from headwater.lineage.sql.switches import is_off_first
from headwater.lineage.sql.tables import table_of

_AT_ONCE: Final = 5_000


def add_known_limits(
    connection: Connection, datasets: Mapping[bytes, Dataset], runs: Collection[bytes | None], limits: LimitCollector
) -> None:
    """Add these limits for the datasets and runs of an answer."""
    keys, of_runs = list(datasets), [run for run in runs if run is not None]
    for start in range(0, max(len(keys), len(of_runs), 1), _AT_ONCE):
        end = start + _AT_ONCE
        for limit in _select_limits(connection, keys[start:end], of_runs[start:end]):
            label = None if limit.dataset is None else datasets[bytes(limit.dataset)].label
            if limit.what == "gap":
                about = label or (f"job {limit.job}" if limit.job else "a run")
                limits.add(LimitReason.GAP, about, ": ".join(filter(None, (limit.reason, limit.detail))))
            elif limit.what == "effect":
                detail = f"whether {limit.reason} took effect isn't known; it isn't applied"
                limits.add(LimitReason.UNKNOWN_EFFECT, label or "?", detail)
            elif any(known.partition(".")[0] == limit.job for one in datasets.values() for known in one.known_as):
                limits.add(
                    LimitReason.OMITTED, f"catalog {limit.job}", f"its option {limit.reason} is false{limit.detail}"
                )


def _select_limits(connection: Connection, datasets: Sequence[bytes], runs: Sequence[bytes]) -> list[Any]:
    """Select gaps, changes with unknown effect and disabled options in one statement."""
    dialect = connection.dialect.name
    given = {"datasets": keys_for(dialect, datasets), "runs": keys_for(dialect, runs)}
    return list(connection.execute(_limits_of(dialect), given))


@cache
def _limits_of(dialect: str) -> Any:
    gap, change, option = (table_of(kind).c for kind in (t.GAP, t.MODIFICATION, t.CATALOG_OPTION))
    nothing = null()
    ofs = select(literal("gap").label("what"), gap.dataset, gap.job, gap.reason, gap.detail)
    by_run = ofs.where(gap.dataset.is_(None), is_among(dialect, gap.run, "runs"))
    effects = select(literal("effect"), change.dataset, nothing, change.kind, nothing)
    effects = effects.where(change.effect != "APPLIED", is_among(dialect, change.dataset, "datasets"))
    holds = case((is_off_first(option), ""), else_=" for some driver, and true was declared first")
    off = select(literal("option"), nothing, option.catalog, option.name, holds)
    off = off.where(option.name.in_(SWITCHES), option.value == OFF)
    return union_all(ofs.where(is_among(dialect, gap.dataset, "datasets")), effects, off, by_run)
