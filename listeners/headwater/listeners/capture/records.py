"""What the driver's JVM tells, a record for each line: the one place where its JSON becomes types.

docs/capture-records.md has the format. Nothing else in capture knows a key of a record; what only a table format's own
classes wrote stays a `FormatFact`, and a plan is `Plan.parse`'s business.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from uuid import UUID

from headwater.events.redaction import mask_message
from headwater.listeners.attribution import Client
from headwater.listeners.capture.statements import (
    FailureDetails,
    FilePaths,
    FormatFact,
    MicroBatch,
    NestedFact,
    OffsetRange,
    StatementFacts,
)

VERSION: Final = 1
"""Of the format: `SqlExecutionListener.recordVersion` in the JVM has to say the same, which is checked."""
_EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})
_HOOK_OF_RDD_JOBS: Final = "jobs"


@dataclass(frozen=True, slots=True)
class CatalogConfiguration:
    """A catalog of a session's: reported once, and referred to by its number."""

    number: int
    name: str
    class_name: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What a record of any kind may say: whose it is, and when that was."""

    id: int | None = None
    """Spark's id of the root execution; none where it was none, as procedures on Spark 4."""
    started: int | None = None
    """Milliseconds since 1970; none where its start wasn't seen."""
    ended: int | None = None
    confs: Mapping[str, str] = field(default_factory=dict)
    """What its session said of headwater."""
    tags: tuple[str, ...] = ()
    client: Client | None = None
    catalogs: tuple[CatalogConfiguration, ...] = ()
    """Catalogs that this record is the first to refer to."""
    plans: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By digest, plans that it or a part of it is the first to refer to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidRecord(Record):
    """What can't be read, or not resolved."""

    why: str


@dataclass(frozen=True, slots=True)
class RddScan:
    """Rows of an RDD that a plan reads: Spark's own ids of their columns say whether a checkpoint kept them."""

    node: int
    ids: tuple[int, ...]
    rdd: int | None = None
    """Spark's id of the RDD."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementRecord(Record):
    """A statement that ended."""

    ended: int = 0
    plan_digest: str = ""
    reads_only: bool = False
    failure: FailureDetails | None = None
    sql: str | None = None
    facts: StatementFacts = field(default_factory=StatementFacts)
    stream: MicroBatch | None = None
    checkpoint_columns: tuple[int, ...] | None = None
    """Spark's own ids of the columns that a checkpoint keeps."""
    function_columns: tuple[int, ...] | None = None
    """The same of the rows that a micro-batch gives to a user's function."""
    function_rdd: int | None = None
    """Spark's id of the RDD that they are: each micro-batch has one, while the columns are always the same."""
    parts: tuple[Record, ...] = ()
    """What such a function did with them."""
    rdds: tuple[RddScan, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisFailureRecord(StatementRecord):
    """A write that analysis refused. Its plan is a list of relations, of which these are read and written."""

    plan: Mapping[str, Any]
    target: int | None
    sources: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableRecord(Record):
    """A statement, or a procedure without an id, that the JVM couldn't read."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedRecord(Record):
    """Statements that found no room in our queues."""

    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LostRecord(Record):
    """Events of all kinds that found no room in Spark's queue."""

    count: int


@dataclass(frozen=True, slots=True)
class CaughtError:
    """What was caught in the JVM, and where: its class and the first line of what it says."""

    why: str
    statement: int | None = None
    """Spark's id of the execution that it was about."""


@dataclass(frozen=True, slots=True)
class FirstCaughtError:
    """The first of its class that a method of ours caught: for the log."""

    place: str
    why: str
    frames: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRecord(Record):
    """What went wrong in the JVM that no other record says, and the first errors of each kind."""

    count: int
    """None where other records say what is missing."""
    caught: tuple[CaughtError, ...] = ()
    """Of so many, those that are known."""
    firsts: tuple[FirstCaughtError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkRecord(Record):
    """All that was posted before somebody asked for this token has been reported."""

    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideCommitRecord(Record):
    """What a hook noted while no statement ran."""

    fact: FormatFact


class InputCounts(NamedTuple):
    rows: int | None
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RddJobRecord(Record):
    """A job that gave the rows of an RDD away."""

    site: str
    """What was called and where in the user's code."""
    saves: bool
    """Hadoop's output was configured for it."""
    path: str | None
    format: str | None
    is_fresh: bool
    """Its files weren't there before."""
    rows: int | None = None
    sources: FilePaths = field(default_factory=lambda: FilePaths(()))
    """What the RDD was made from, as far as that shows."""
    of_formats: tuple[FormatFact, ...] = ()
    """What RDDs of formats say that it was made from, too."""
    is_whole: bool = False
    """There are no other sources."""
    counts: Mapping[str, InputCounts] = field(default_factory=dict)
    """By a source's path: how much was read of it, where that is certain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionClosedRecord(Record):
    """A client's session ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFailureRecord(Record):
    """What a client asked for failed before Spark ran anything."""

    message: str
    targets: tuple[tuple[str, ...], ...]
    """Names of what it was to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryStartedRecord(Record):
    """A streaming query runs."""

    query: UUID
    run: UUID
    name: str | None
    began: int | None
    """Milliseconds at which the incarnation began."""
    checkpoint: str | None
    trigger: str | None
    is_continuous: bool
    fault: str | None
    """Why something of it couldn't be read."""
    plan: Mapping[str, Any] | None
    first: MicroBatch | None
    """Its first micro-batch, where it had one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryEndedRecord(Record):
    run: UUID
    error: str | None
    condition: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureCallRecord(Record):
    """A procedure ran while Spark analysed its call, and nothing shows what it did."""

    procedure: str


def parse_record(text: str) -> Record:
    """The record in a line; an InvalidRecord where it can't be read. Unknown keys are ignored."""
    try:
        return parse_fields(json.loads(text))
    except ValueError as e:
        return InvalidRecord(why=f"a record of the SQL listener can't be read: {e}")


def parse_fields(fields: Mapping[str, Any]) -> Record:
    """The record in an object of JSON."""
    origin: dict[str, Any] = {}
    try:
        origin = _origin(fields)
        return _KINDS[fields["kind"]](fields, origin)
    except Exception as e:  # noqa: BLE001 - whatever it holds, the next one is read
        return InvalidRecord(**origin, why=f"{type(e).__name__}: {e}")


def _origin(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What a record of any kind may say."""
    started = fields.get("started")
    return {
        "id": fields.get("id"),
        "started": None if started is None or started < 0 else started,
        "ended": fields.get("ended"),
        "confs": fields.get("confs", _EMPTY),
        "tags": tuple(fields.get("tags", ())),
        "client": _client(fields["client"]) if "client" in fields else None,
        "catalogs": tuple(map(_catalog, fields["catalogs"])) if "catalogs" in fields else (),
        "plans": fields.get("plans", _EMPTY),
    }


def _client(fields: Mapping[str, Any]) -> Client:
    return Client(fields["server"], fields["session"], fields.get("user"), fields.get("operation"))


def _catalog(fields: Mapping[str, Any]) -> CatalogConfiguration:
    """The option without a name is the class that the session's configuration says."""
    options = dict(fields["options"])
    class_name, configured = fields["class"], options.pop("", "")
    return CatalogConfiguration(fields["number"], fields["name"], configured or class_name, options)


def _statement(fields: Mapping[str, Any], origin: Mapping[str, Any]) -> StatementRecord:
    return StatementRecord(
        **{**origin, "ended": fields["ended"]},
        plan_digest=fields["planDigest"],
        reads_only=fields.get("readsOnly", False),
        failure=_failure(fields["failure"]) if "failure" in fields else None,
        sql=fields.get("sql"),
        facts=_facts(fields),
        stream=_micro_batch(fields["stream"]) if "stream" in fields else None,
        checkpoint_columns=_numbers(fields.get("checkpointColumns")),
        function_columns=_numbers(fields.get("functionColumns")),
        function_rdd=fields.get("functionRdd"),
        parts=tuple(map(parse_fields, fields["parts"])) if "parts" in fields else (),
        rdds=tuple(RddScan(each["node"], tuple(each["ids"]), each.get("rdd")) for each in fields.get("rdds", ())),
    )


def _numbers(numbers: Iterable[int] | None) -> tuple[int, ...] | None:
    return None if numbers is None else tuple(numbers)


def _failure(fields: Mapping[str, Any]) -> FailureDetails:
    return FailureDetails(
        fields.get("message", ""),
        fields.get("type", ""),
        fields.get("condition"),
        fields.get("sqlState"),
        fields.get("parameters", _EMPTY),
    )


def _facts(fields: Mapping[str, Any]) -> StatementFacts:
    return StatementFacts(
        reads=tuple(fields.get("reads", ())),
        nested_reads=tuple(fields.get("nestedReads", ())),
        nested_facts=tuple(map(_nested_fact, fields["nestedFacts"])) if "nestedFacts" in fields else (),
        hook_facts=tuple(fields.get("hookFacts", ())),
        rows=tuple(fields.get("rows", ())),
        metrics=fields.get("metrics", _EMPTY),
        looked_up=fields.get("formats", _EMPTY),
    )


def _nested_fact(fields: Mapping[str, Any]) -> NestedFact:
    return NestedFact(
        command=fields.get("command"),
        output_path=fields.get("outputPath"),
        metrics=fields.get("metrics", _EMPTY),
        why=_error_text(fields.get("unreadable")),
        of_format=fields,
    )


def _error_text(text: str | None) -> str | None:
    """What an exception of the JVM says, without the values in it: it goes into the details of Gaps."""
    return None if text is None else mask_message(text)


def _micro_batch(fields: Mapping[str, Any]) -> MicroBatch:
    return MicroBatch(
        query=UUID(fields["query"]),
        run=UUID(fields["run"]),
        batch=fields["batch"],
        began=fields.get("began"),
        offsets=_offsets(fields["offsets"]) if "offsets" in fields else None,
        why=_error_text(fields.get("lost") or fields.get("unknown")),
        files=fields.get("files"),
    )


def _offsets(offsets: Iterable[Mapping[str, Any]]) -> Mapping[int, tuple[OffsetRange, ...]]:
    found: dict[int, tuple[OffsetRange, ...]] = {}
    for offset in offsets:
        paths = FilePaths.parse(offset) if "paths" in offset else None
        taken = OffsetRange(offset.get("start"), offset.get("end"), paths)
        known = found.get(offset["node"], ())
        found[offset["node"]] = known if taken in known else (*known, taken)
    return found


def _analysis_failure(fields: Mapping[str, Any], origin: Mapping[str, Any]) -> AnalysisFailureRecord:
    return AnalysisFailureRecord(
        **origin,
        plan=fields["plan"],
        failure=_failure(fields["failure"]),
        sql=fields.get("sql"),
        target=fields.get("target"),
        sources=tuple(fields["sources"]),
    )


def _outside_statement(fields: Mapping[str, Any], origin: Mapping[str, Any]) -> Record:
    fact: FormatFact = fields["fact"]
    if fact.get("hook") != _HOOK_OF_RDD_JOBS:
        return OutsideCommitRecord(**origin, fact=fact)
    sources = fact.get("sources", _EMPTY)
    return RddJobRecord(
        started=fact["started"],
        ended=fact["ended"],
        tags=tuple((fact.get("tags") or "").split(",")),
        site=fact["site"],
        saves=fact["saves"],
        path=fact.get("path"),
        format=fact.get("format"),
        is_fresh=fact.get("fresh", False),
        rows=fact.get("rows"),
        sources=FilePaths.parse(sources),
        of_formats=tuple(sources.get("ofFormats", ())),
        is_whole=sources.get("isWhole", False),
        counts={each["path"]: InputCounts(each.get("rows"), each["bytes"]) for each in sources.get("counts", ())},
    )


def _failed(fields: Mapping[str, Any], origin: Mapping[str, Any]) -> FailedRecord:
    return FailedRecord(
        **origin,
        count=fields["count"],
        caught=tuple(
            CaughtError(mask_message(each["why"]), each.get("statement")) for each in fields.get("caught", ())
        ),
        firsts=tuple(
            FirstCaughtError(each["place"], mask_message(each["why"]), tuple(each["frames"]))
            for each in fields.get("firsts", ())
        ),
    )


def _of_client(fields: Mapping[str, Any], origin: Mapping[str, Any]) -> Record:
    if fields["what"] == "closed":
        return SessionClosedRecord(**origin)
    targets = tuple(tuple(name) for name in fields["targets"])
    return ClientFailureRecord(**origin, message=fields["message"], targets=targets)


def _query(fields: Mapping[str, Any], origin: Mapping[str, Any]) -> Record:
    run = UUID(fields["run"])
    if fields["event"] == "ended":
        return QueryEndedRecord(**origin, run=run, error=fields.get("error"), condition=fields.get("condition"))
    return QueryStartedRecord(
        **origin,
        query=UUID(fields["query"]),
        run=run,
        name=fields.get("name"),
        began=fields.get("began"),
        checkpoint=fields.get("checkpoint"),
        trigger=fields.get("trigger"),
        is_continuous=fields.get("continuous", False),
        fault=_error_text(fields.get("unreadable")),
        plan=fields.get("plan"),
        first=_micro_batch(fields) if "plan" in fields else None,
    )


_KINDS: Final[Mapping[str, Callable[[Mapping[str, Any], dict[str, Any]], Record]]] = {
    "statement": _statement,
    "analysisFailure": _analysis_failure,
    "unreadable": lambda fields, origin: UnreadableRecord(**origin, why=mask_message(fields["why"])),
    "procedureCall": lambda fields, origin: ProcedureCallRecord(**origin, procedure=fields["procedure"]),
    "outsideStatement": _outside_statement,
    "client": _of_client,
    "query": _query,
    "dropped": lambda fields, origin: DroppedRecord(**origin, count=fields["count"]),
    "lost": lambda fields, origin: LostRecord(**origin, count=fields["count"]),
    "failed": _failed,
    "mark": lambda fields, origin: MarkRecord(**origin, token=fields["token"]),
}
