"""Commits that no plan tells of: made by calling a format's library, or by a statement that failed behind them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from headwater.events import DatasetId, Event, Format, Gap, Input, Output
from headwater.events.health import GapReason
from headwater.events.identity import IdentityError, dataset_of_path
from headwater.events.jobs import CommitKind, OverwriteScope, ReadMode, Source
from headwater.listeners.capture.asking import answers_about
from headwater.listeners.capture.batch.commit_translator import CommitTranslator, make_input
from headwater.listeners.capture.batch.lineage_filter import LineageFilter
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.drafts import OwnedDrafts, Owner, make_gap, name_of
from headwater.listeners.capture.formats import FormatPlugin
from headwater.listeners.capture.formats.protocol import (
    OutsideCommit,
    OutsideCommitFormat,
    RddSource,
    ReadVersion,
    ref_fields,
    sources_of_rdds,
)
from headwater.listeners.capture.records import OutsideCommitRecord, RddJobRecord
from headwater.listeners.capture.statements import FormatFact

_MAX_REMEMBERED: Final = 1_000
_RDD_INPUT: Final = Input(dataset=None, opaque="RDD")
_FORMATS: Final = {"TextOutputFormat": Format.TEXT}


def commits_outside_statements(
    facts: Iterable[FormatFact], context: CaptureContext, lineage_filter: LineageFilter
) -> Iterator[OutsideCommit]:
    """What these facts of hooks say was committed, without what catalogs keep to themselves."""
    for fact in facts:
        for found, _ in answers_about(fact, partial(_outside_commit, fact, context)):
            shown = tuple(lineage_filter.output(output) for output in found.outputs if lineage_filter.shows(output))
            if shown or not found.outputs:
                yield replace(found, outputs=shown, inputs=found.inputs if shown == found.outputs else None)


def _outside_commit(fact: FormatFact, context: CaptureContext, plugin: FormatPlugin) -> OutsideCommit | None:
    reader = plugin.reader
    return reader.outside_commit(fact, context) if isinstance(reader, OutsideCommitFormat) else None


class OutsideStatementTranslator:
    """For one producer."""

    def __init__(self, context: CaptureContext, commits: CommitTranslator, lineage_filter: LineageFilter) -> None:
        self._context = context
        self._commits = commits
        self._lineage_filter = lineage_filter
        self._reported: OrderedDict[str, None] = OrderedDict()

    def commits(self, record: OutsideCommitRecord) -> Iterator[OwnedDrafts]:
        """A commit that a library made outside of any statement."""
        is_whole = False
        for commit in commits_outside_statements((record.fact,), self._context, self._lineage_filter):
            yield OwnedDrafts(Owner(record), commit.altered)
            if commit.outputs:
                committed = self._commits.outside_statement(commit.outputs, commit.inputs)
                yield OwnedDrafts(Owner(record, name_of(commit.outputs[0])), (committed,))
            is_whole = commit.whole
        if not is_whole:
            detail = f"{record.fact.get('hook', 'something')} was committed outside of any statement"
            yield OwnedDrafts(Owner(record), (make_gap(record, GapReason.NOT_SUPPORTED, detail),))

    def rdd_job(self, record: RddJobRecord) -> OwnedDrafts:
        """A job that gave the rows of an RDD away."""
        output = self._output(record)
        owner = Owner(record, None if output is None else name_of(output))
        return OwnedDrafts(owner, self._events_of_job(record, output))

    def _output(self, record: RddJobRecord) -> Output | None:
        """The files it wrote; none where it wrote something else, or where that couldn't be seen."""
        dataset = None if record.path is None else self._dataset(record.path)
        if dataset is None:
            return None
        fmt = _FORMATS.get(record.format or "", Format.OTHER)
        return Output(
            dataset=dataset,
            format=fmt,
            commit_kind=CommitKind.APPEND if record.is_fresh else CommitKind.UNKNOWN,
            replaced=OverwriteScope.NOTHING if record.is_fresh else OverwriteScope.UNKNOWN,
            rows=record.rows if fmt is Format.TEXT else None,  # a record of another format may be many rows
        )

    def _inputs(self, record: RddJobRecord) -> tuple[Input, ...]:
        """The files and tables that the RDD was made from and, where there may be more, the RDD as an opaque input."""
        paths: dict[DatasetId | None, list[str]] = {}
        for path in record.sources.directories:
            paths.setdefault(self._dataset(path), []).append(path)
        known = tuple(_read_files(path, of, record) for path, of in paths.items() if path is not None)
        of_formats = (make_input(s.source, self._version(s), versioned=False) for s in self._of_formats(record))
        return known if record.is_whole and len(known) == len(paths) else (*known, *of_formats, _RDD_INPUT)

    def _of_formats(self, record: RddJobRecord) -> Iterator[RddSource]:
        """Without the tables of catalogs that keep them to themselves."""
        for source in sources_of_rdds(record.of_formats, self._context):
            if not self._lineage_filter.of(source.source).table_lineage:
                yield source

    def _version(self, source: RddSource) -> ReadVersion:
        return ReadVersion() if self._lineage_filter.of(source.source).data_lineage else source.version

    def _dataset(self, path: str) -> DatasetId | None:
        try:
            return dataset_of_path(path, self._context.environment)
        except IdentityError:
            return None

    def _events_of_job(self, record: RddJobRecord, output: Output | None) -> Iterator[Event]:
        """What is known is reported each time, and that something isn't, once for each place in the code."""
        if output is not None:
            yield self._commits.outside_statement((output,), self._inputs(record))
            for source in self._of_formats(record):
                if (why := self._version(source).why) is not None:
                    yield Gap(reason=GapReason.NOT_EXACT, detail=why, source=Source(**ref_fields(source.source)))
        elif self._is_new(record.site):
            where = "files or a store that wasn't seen" if record.saves else "code that nobody sees into"
            detail = f"{record.site} gives the rows of an RDD to {where}"
            yield Gap(reason=GapReason.NOT_SUPPORTED, detail=detail)

    def _is_new(self, site: str) -> bool:
        if site in self._reported:
            return False
        self._reported[site] = None
        if len(self._reported) > _MAX_REMEMBERED:
            self._reported.popitem(last=False)
        return True


def _read_files(dataset: DatasetId, paths: Sequence[str], record: RddJobRecord) -> Input:
    counts = record.counts.get(paths[0]) if len(paths) == 1 else None
    rows, size = counts or (None, None)
    return Input(dataset=dataset, mode=ReadMode.STATE, rows=rows, bytes=size)
