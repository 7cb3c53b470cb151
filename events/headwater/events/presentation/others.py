"""What headwater tells of itself, and what administrators did, in words."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.events.administration import CatalogOptionsDeclared, DatasetsUnified, LineageDeleted, LineageScope
from headwater.events.health import Closed, Gap, Heartbeat
from headwater.events.presentation.phrases import (
    first_line,
    joined,
    labelled,
    listed,
    pairs,
    place_of,
    seconds_of,
    step,
)

_SCOPES = {
    LineageScope.SOURCE_TABLES: "table lineage of sources",
    LineageScope.SINK_TABLES: "table lineage of sinks",
    LineageScope.TABLES: "table lineage",
    LineageScope.DATA: "data lineage",
    LineageScope.ALL: "all lineage",
}


def gap(event: Gap) -> str:
    return joined(
        joined(event.reason.value, _missed(event), _source(event), labelled("for listener", event.listener)),
        first_line(event.detail),
        by=": ",
    )


def heartbeat(event: Heartbeat) -> str:
    return joined("alive", labelled("next in", event.interval and f"{event.interval} s"), _dropped(event.dropped))


def closed(event: Closed) -> str:
    return joined(
        "all is reported" if event.complete else "what is left in the spool must be shipped", _dropped(event.dropped)
    )


def lineage_deleted(event: LineageDeleted) -> str:
    job = f"of {event.of_job}{' and its steps' if event.steps else ''}" if event.of_job else ""
    snapshots = labelled("up to", event.up_to_snapshot)
    return joined(
        _SCOPES.get(event.scope, "lineage"),
        job,
        labelled("run", event.of_run),
        joined(labelled("about", event.dataset), snapshots),
        labelled("in catalog", event.catalog and event.catalog.location),
        f"before {seconds_of(event.before)}",
        _by(event.by),
    )


def catalog_options_declared(event: CatalogOptionsDeclared) -> str:
    kind = event.context.id.type if event.context.id else event.context.factory or event.context.class_name
    location = labelled("at", event.context.id.location) if event.context.id else ""
    lineage = f"table lineage {_on(event.table_lineage)}, data lineage {_on(event.data_lineage)}"
    return joined(
        f"{event.context.name} ({joined(kind, location)}):",
        lineage,
        pairs(event.options) and f"({pairs(event.options)})",
        _by(event.by),
    )


def datasets_unified(event: DatasetsUnified) -> str:
    verb = "is" if len(event.others) == 1 else "are"
    return joined(
        listed(event.others, str), f"{verb} {event.dataset}", event.reason and f"({event.reason})", _by(event.by)
    )


def _missed(event: Gap) -> str:
    family = event.missed_family.value.lower() if event.missed_family else ""
    count = joined("up to", f"{event.missed:,}", family, "events missed") if event.missed is not None else ""
    ranges = (
        ("sequences", event.first_sequence, event.last_sequence),
        ("barriers", event.first_barrier, event.last_barrier),
        ("offsets", event.first_offset, event.last_offset),
        ("from", event.first_time and seconds_of(event.first_time), event.last_time and seconds_of(event.last_time)),
    )
    texts = [f"{word} {step(first, last)}" for word, first, last in ranges if first is not None or last is not None]
    return joined(count, *texts)


def _source(event: Gap) -> str:
    topic = labelled("in", event.topic and joined(event.topic, "" if event.partition is None else str(event.partition)))
    return joined(labelled("of", event.source and place_of(event.source)), topic)


def _dropped(counts: Mapping[str, int]) -> str:
    dropped = {where: count for where, count in counts.items() if count}
    return f"(dropped so far: {pairs(dropped)})" if dropped else ""


def _on(switch: bool) -> str:
    return "on" if switch else "off"


def _by(who: str | None) -> str:
    return labelled("by", who)
