"""Records with what they refer to: catalogs, the plan that was reported before, the rows that another statement
kept."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from headwater.listeners.capture.batch.checkpoints import CheckpointedRows, CheckpointRegistry
from headwater.listeners.capture.batch.write_lineage import WriteLineage, lineage_of_failed_analysis
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.plan.tree import Plan
from headwater.listeners.capture.plan_cache import ParsedPlan, PlanCache
from headwater.listeners.capture.records import AnalysisFailureRecord, InvalidRecord, Record, StatementRecord
from headwater.listeners.capture.statements import MicroBatch, Statement

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ResolvedStatement:
    record: StatementRecord
    statement: Statement
    known: ParsedPlan


@dataclass(frozen=True, slots=True)
class ResolvedFunctionBatch(ResolvedStatement):
    """A micro-batch that a user's function was given."""

    parts: Iterable[Resolved]
    """What the function did. To be read once, each part when the one before it has been reported: that may have made
    the table that this one writes."""


@dataclass(frozen=True, slots=True)
class RefusedWrite:
    """A write that analysis refused."""

    record: AnalysisFailureRecord
    statement: Statement
    lineage: WriteLineage
    """As far as it is known."""


Resolved: TypeAlias = ResolvedStatement | RefusedWrite | Record
"""A record that refers to nothing is itself."""


class Resolver:
    """For one thread."""

    def __init__(self, context: CaptureContext, max_plan_bytes: int) -> None:
        self._context = context
        self._plans = PlanCache(context, max_plan_bytes)
        self._checkpoints = CheckpointRegistry()
        self._kinds: Mapping[type, Callable[[Any, MicroBatch | None], Resolved]] = {
            StatementRecord: self._statement,
            AnalysisFailureRecord: self._refused_write,
        }

    def resolve(self, record: Record, batch: MicroBatch | None = None) -> Resolved:
        """An InvalidRecord where it can't be. `batch` is the micro-batch that the record is a part of."""
        self._plans.offer(record.plans)
        try:
            for catalog in record.catalogs:
                self._context.learn_catalog(catalog.number, catalog.name, catalog.class_name, catalog.options)
            return self._kinds.get(type(record), _itself)(record, batch)
        except Exception as e:  # noqa: BLE001 - a plan can be anything
            return invalid_record(record, e)

    def take_forgotten(self) -> list[str]:
        """Digests of the plans that aren't kept any more: a statement that has one needs it reported again."""
        return self._plans.take_forgotten()

    def _statement(self, record: StatementRecord, batch: MicroBatch | None) -> ResolvedStatement:
        known = self._plans.parsed_plan(record)
        self._context.enter_session(known.plan.catalogs)
        statement = _statement_of(record, known.plan)
        if record.function_columns is not None:
            query = known.node.plan_of("query")
            rows = CheckpointedRows(record.function_columns, record.function_rdd)
            self._checkpoints.keep(rows, statement, self._context, query, record.rdds)
            return ResolvedFunctionBatch(record, statement, known, self._parts(record))
        if known.lineage is not None and record.rdds:
            is_streamed = batch is not None
            shown = self._checkpoints.seen_through(known.lineage, record.rdds, known.plan, is_streamed=is_streamed)
            known = replace(known, lineage=shown)
        if record.reads_only and record.checkpoint_columns is not None and record.failure is None:
            rows = CheckpointedRows(record.checkpoint_columns)
            self._checkpoints.keep(rows, statement, self._context, rdds=record.rdds)
        return ResolvedStatement(record, statement if batch is None else replace(statement, stream=batch), known)

    def _parts(self, record: StatementRecord) -> Iterator[Resolved]:
        for part in record.parts:
            yield self.resolve(part, record.stream)

    def _refused_write(self, record: AnalysisFailureRecord, _: MicroBatch | None) -> RefusedWrite:
        plan = Plan.parse(record.plan)
        self._context.enter_session(plan.catalogs)
        lineage = lineage_of_failed_analysis(record.target, record.sources, plan, self._context)
        return RefusedWrite(record, _statement_of(record, plan), lineage)


def _itself(record: Record, _: MicroBatch | None) -> Record:
    return record


def invalid_record(record: Record, error: Exception) -> InvalidRecord:
    """What stands for a record that can't be translated."""
    _LOG.debug("a record couldn't be reported", exc_info=error)
    return InvalidRecord(
        id=record.id,
        started=record.started,
        ended=record.ended,
        confs=record.confs,
        tags=record.tags,
        client=record.client,
        why=f"{type(error).__name__}: {error}",
    )


def _statement_of(record: StatementRecord, plan: Plan) -> Statement:
    return Statement(
        id=record.id,
        plan=plan,
        ended=record.ended,
        started=record.started,
        confs=record.confs,
        failure=record.failure,
        sql=record.sql,
        facts=record.facts,
        stream=record.stream,
    )
