"""OpenLineage events as the judge needs them, read tolerantly: what isn't understood is as if it weren't there.

RunEvents, JobEvents and DatasetEvents of any version of the spec. An event without a time can't be judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Final, NamedTuple

_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?)(?:\.(\d+))?\s*(Z|[+-]\d\d:?\d\d)?")
_WHOLE: Final = ""
"""The target of what a `dataset` of column lineage influences."""


class QualifiedName(NamedTuple):
    """A namespace and a name: of a dataset, or of a job."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace.rstrip('/')}/{self.name.lstrip('/')}"


class ColumnClaim(NamedTuple):
    """That a column of a dataset is made from, or influenced by, a column of another one."""

    target: str
    """Empty where the whole dataset is influenced."""
    source: QualifiedName
    column: str
    is_direct: bool
    kind: str | None
    """The subtype of the transformation, where it is said."""


@dataclass(frozen=True)
class ReportedDataset:
    """A dataset as one event has it."""

    name: QualifiedName
    symlinks: tuple[QualifiedName, ...] = ()
    version: str | None = None
    columns: tuple[tuple[str, str | None], ...] | None = None
    """Names and types of the schema; None without a schema."""
    lineage: tuple[ColumnClaim, ...] = ()
    lifecycle: str | None = None
    previous: QualifiedName | None = None
    """What a renamed dataset was called."""


class ReportedParent(NamedTuple):
    """A run that another one says to be a part of."""

    run: str
    job: QualifiedName


@dataclass(frozen=True)
class ReportedEvent:
    """One event. `state` and `run` are those of RunEvents."""

    time: datetime
    state: str | None = None
    run: str | None = None
    job: QualifiedName | None = None
    parent: ReportedParent | None = None
    inputs: tuple[ReportedDataset, ...] = ()
    outputs: tuple[ReportedDataset, ...] = ()
    subject: ReportedDataset | None = None
    """What a DatasetEvent is about."""

    @property
    def datasets(self) -> Iterator[ReportedDataset]:
        """All datasets that the event names."""
        yield from (*self.inputs, *self.outputs)
        if self.subject is not None:
            yield self.subject


def read_event(document: object) -> ReportedEvent | None:
    """Read an event that was parsed from JSON; None where it is none, or has no time."""
    event = _mapping(document)
    time = parse_time(event.get("eventTime"))
    if time is None or not (event.keys() & {"run", "job", "dataset"}):
        return None
    run, state = _mapping(event.get("run")), event.get("eventType")
    job = _mapping(event.get("job"))
    subject = event.get("dataset")
    return ReportedEvent(
        time=time,
        state=state.upper() if isinstance(state, str) else None,
        run=_text(run.get("runId")),
        job=_name(job) if job else None,
        parent=_parent(_facet(run, "parent")),
        inputs=tuple(_datasets(event.get("inputs"))),
        outputs=tuple(_datasets(event.get("outputs"))),
        subject=_dataset(_mapping(subject)) if subject else None,
    )


def parse_time(text: object) -> datetime | None:
    """Read a time with any number of digits; without an offset it is in UTC.

    >>> parse_time("2026-03-01T12:00:19.123456789+01:00").isoformat()
    '2026-03-01T11:00:19.123456+00:00'
    """
    matched = _TIME.fullmatch(text.strip()) if isinstance(text, str) else None
    if matched is None:
        return None
    moment, fraction, offset = matched.groups()
    zone = "+00:00" if offset in {None, "Z"} else offset if ":" in offset else f"{offset[:3]}:{offset[3:]}"
    try:
        found = datetime.fromisoformat(f"{moment}{zone}")
        return found.replace(microsecond=int((fraction or "0")[:6].ljust(6, "0"))).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None


def _parent(facet: Mapping[str, Any]) -> ReportedParent | None:
    run, job = _text(_mapping(facet.get("run")).get("runId")), _mapping(facet.get("job"))
    return ReportedParent(run, _name(job)) if run and job else None


def _datasets(values: object) -> Iterator[ReportedDataset]:
    for value in _sequence(values):
        dataset = _mapping(value)
        if dataset:
            yield _dataset(dataset)


def _dataset(dataset: Mapping[str, Any]) -> ReportedDataset:
    schema, lifecycle = _facet(dataset, "schema"), _facet(dataset, "lifecycleStateChange")
    previous, change = _mapping(lifecycle.get("previousIdentifier")), _text(lifecycle.get("lifecycleStateChange"))
    fields = [_mapping(field) for field in _sequence(schema.get("fields"))]
    return ReportedDataset(
        name=_name(dataset),
        symlinks=tuple(_name(_mapping(each)) for each in _sequence(_facet(dataset, "symlinks").get("identifiers"))),
        version=_version(_facet(dataset, "version")),
        columns=tuple((_text(field.get("name")) or "", _text(field.get("type"))) for field in fields)
        if schema
        else None,
        lineage=tuple(_column_claims(_facet(dataset, "columnLineage"))),
        lifecycle=change.upper() if change else None,
        previous=_name(previous) if previous else None,
    )


def _version(facet: Mapping[str, Any]) -> str | None:
    found = facet.get("datasetVersion")
    return str(found) if isinstance(found, (str, int)) and not isinstance(found, bool) else None


def _column_claims(facet: Mapping[str, Any]) -> Iterator[ColumnClaim]:
    for target, of_target in _mapping(facet.get("fields")).items():
        yield from _claims_of(str(target), _mapping(of_target).get("inputFields"))
    yield from _claims_of(_WHOLE, facet.get("dataset"))


def _claims_of(target: str, inputs: object) -> Iterator[ColumnClaim]:
    """A source without transformations, as older versions of the facet have it, is what values are made from."""
    for value in _sequence(inputs):
        source = _mapping(value)
        column, name = _text(source.get("field")) or "", _name(source)
        transformations = [_mapping(each) for each in _sequence(source.get("transformations"))]
        for transformation in transformations or [{}]:
            is_direct = (_text(transformation.get("type")) or ("DIRECT" if target else "INDIRECT")).upper() == "DIRECT"
            yield ColumnClaim(target, name, column, is_direct, _text(transformation.get("subtype")))


def _facet(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Facets of inputs and outputs may stand in either of two places."""
    for place in ("facets", "inputFacets", "outputFacets"):
        found = _mapping(_mapping(holder.get(place)).get(name))
        if found:
            return {} if found.get("_deleted") is True else found
    return {}


def _name(holder: Mapping[str, Any]) -> QualifiedName:
    return QualifiedName(_text(holder.get("namespace")) or "", _text(holder.get("name")) or "")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _sequence(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()
