"""Compaction: closed segments are rewritten smaller, and no record is lost or changed by it, nor its offset or time.

A segment that isn't written to any more is rewritten into blocks of records that are compressed together, and those
that are small then are rewritten into one. Readers and cursors don't know of it: one that has the old file open reads
it to its end. Why nothing is dropped, copies and signs of life neither, is in docs/decisions/0010-compaction.md.

The new file is complete, read again and on the disk before it takes the name of the first of those that it was made of;
these go after that. Whoever dies in between leaves a file that nobody reads, or segments that hold nothing that isn't
in the one before them: readers pass over them, and the next writer removes them.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from headwater.journal.appender import Appender
from headwater.journal.block import BLOCK_BYTES, INNER_SIZE, MOST_RECORDS, pack_block
from headwater.journal.errors import typed
from headwater.journal.files import CREATE, Files, opened, sync_path, write_all
from headwater.journal.options import JournalOptions
from headwater.journal.record import Record
from headwater.journal.scan import SegmentScanner
from headwater.journal.segment import (
    HEADER_SIZE,
    UNFINISHED,
    Segment,
    SegmentHeader,
    pack_header,
    read_header,
    seed_of,
    segment_path,
)

_LOG = logging.getLogger(__name__)
MERGED_AT_ONCE = 8
"""So many small segments become one; of fewer there are never too many."""
_WORTH_IT = 0.9
"""What doesn't get smaller than this part of itself stays as it is."""
_COMPARED_AT_ONCE = 200
MayGoOn = Callable[[], bool]
"""Asked before each block; may wait, so that others have the processor and the disk meanwhile."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """Segments that became one."""

    segments: int
    before: int
    """Bytes."""
    after: int


class Compaction:
    """Rewrites the closed segments of a journal, a piece at a time. For one thread; its writer's lock is held."""

    def __init__(
        self, files: Files, appender: Appender, mutex: threading.Lock, removing: threading.Lock, options: JournalOptions
    ) -> None:
        """`removing` is held by whoever takes segments away."""
        self._files = files
        self._appender = appender
        self._mutex = mutex
        self._removing = removing
        self._options = options
        self._left_alone: set[int] = set()
        """First offsets of segments that can't be rewritten, or needn't."""

    def step(self, may_go_on: MayGoOn) -> Compacted | None:
        """Do the next piece of work; None where there is none, or it was told not to go on."""
        while segments := self._next():
            with typed("compacting", segments[0].path):
                try:
                    return self._rewrite(segments, may_go_on)
                except (_UnfitError, FileNotFoundError) as why:  # dropped meanwhile
                    _LOG.info("%s isn't compacted: %s", segments[0].path, why)
                    self._left_alone.add(segments[0].base)
                except _StoppedError:
                    return None
        return None

    def _next(self) -> Sequence[Segment]:
        with self._mutex:
            closed = self._appender.segments[:-1]
        after = self._options.compact_after
        if after is None:
            return ()
        horizon = self._options.clock() - int(after * 1_000_000)
        for each in closed:
            if not each.compacted and each.base not in self._left_alone and each.newest <= horizon:
                return (each,)
        return next(self._small_ones(closed), ())

    def _small_ones(self, closed: Sequence[Segment]) -> Iterator[Sequence[Segment]]:
        """Neighbours that fit into one segment, and are as many as pay."""
        for start, first in enumerate(closed):
            count, size = 0, 0
            for each in closed[start:]:
                size += each.size
                if not each.compacted or size > self._options.segment_size or self._is_too_young(each, first):
                    break
                count += 1
            if count >= MERGED_AT_ONCE and first.base not in self._left_alone:
                yield closed[start : start + count]

    def _is_too_young(self, segment: Segment, first: Segment) -> bool:
        """Whether it would keep the first one from going at its age for long."""
        most = self._options.max_age
        return most is not None and segment.newest - first.newest > most * 1_000_000 / MERGED_AT_ONCE

    def _rewrite(self, segments: Sequence[Segment], may_go_on: MayGoOn) -> Compacted:
        path = segments[0].path.with_name(segments[0].path.name + UNFINISHED)
        before = sum(each.size for each in segments)
        try:
            header = self._header(segments)
            with contextlib.closing(self._records(segments)) as records:
                size = _write_blocks(self._files, path, header, records, may_go_on)
            _check_gain(size, before, len(segments))
            self._compare(segments, Segment(segments[0].base, path, size, 0), may_go_on)
            self._replace(segments, path, size)
        except BaseException:
            self._remove(path)
            raise
        done = Compacted(len(segments), before, size)
        _LOG.info("compacted %d segments at %s: %d bytes for %d", done.segments, segments[0].path, size, before)
        return done

    def _header(self, segments: Sequence[Segment]) -> SegmentHeader:
        headers = [read_header(self._files, each.path) for each in segments]
        first = headers[0]
        if first is None or None in headers:
            raise _UnfitError("a header is damaged")
        return first

    def _records(self, segments: Sequence[Segment]) -> Generator[Record]:
        """All records. What holds anything else, or lacks some, stays as it is: every reader is told the same then."""
        following = segments[0].base
        for segment in segments:
            if segment.base != following:
                raise _UnfitError(f"offsets before {segment.base} were left out")
            with SegmentScanner(self._files, segment.path, segment.base) as scanner:
                while records := scanner.read(1000, BLOCK_BYTES):
                    yield from records
                if scanner.position != scanner.size():
                    raise _UnfitError(f"{segment.path} is damaged at {scanner.position}")
                following = scanner.offset

    def _compare(self, old: Sequence[Segment], new: Segment, may_go_on: MayGoOn) -> None:
        """Nothing goes before what is to replace it was seen to hold the same."""
        with contextlib.closing(self._records(old)) as before, contextlib.closing(self._records([new])) as after:
            for number, (one, other) in enumerate(zip_longest(before, after)):
                if one != other:
                    raise _UnfitError(f"the record {old[0].base + number} would come out differently")
                if number % _COMPARED_AT_ONCE == 0:
                    _check(may_go_on)

    def _replace(self, segments: Sequence[Segment], fresh: Path, size: int) -> None:
        """Put the new file in the place of the old ones, unless the limits took one of them meanwhile."""
        first, there = segments[0], self._appender.segments
        with self._removing:
            with self._mutex:
                if any(each not in there for each in segments):
                    raise _UnfitError("it was dropped meanwhile")
            self._files.rename(fresh, first.path)
            with self._mutex:
                at = there.index(first)
                there[at : at + len(segments)] = [
                    Segment(first.base, first.path, size, segments[-1].newest, compacted=True)
                ]
            sync_path(self._files, first.path.parent)
            for each in segments[1:]:
                self._remove(each.path)

    def _remove(self, path: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._files.remove(path)


class _UnfitError(Exception):
    """These segments stay as they are."""


class _StoppedError(Exception):
    """It was told not to go on."""


def _check_gain(after: int, before: int, segments: int) -> None:
    if after > _WORTH_IT * before and segments == 1:
        raise _UnfitError(f"of {before} bytes {after} would be left")


def _check(may_go_on: MayGoOn) -> None:
    if not may_go_on():
        raise _StoppedError


def _write_blocks(
    files: Files, path: Path, header: SegmentHeader, records: Iterator[Record], may_go_on: MayGoOn
) -> int:
    """The size of the file, which is on the disk then."""
    at, offset, seed = HEADER_SIZE, header.base, seed_of(header.base)
    with opened(files, path, CREATE) as descriptor:
        for group in _grouped(records):
            _check(may_go_on)
            block = pack_block(group, seed + at)
            if block is None:
                raise _UnfitError(f"the record {offset} is too large for a block")
            write_all(files, descriptor, block, at)
            at += len(block)
            offset = group[-1].offset + 1
        write_all(files, descriptor, pack_header(replace(header, following=offset)), 0)
        files.sync(descriptor)
    return at


def _grouped(records: Iterator[Record]) -> Iterator[list[Record]]:
    group: list[Record] = []
    size = 0
    for record in records:
        group.append(record)
        size += INNER_SIZE + len(record.value) + len(record.key or b"")
        if size >= BLOCK_BYTES or len(group) == MOST_RECORDS:
            yield group
            group, size = [], 0
    if group:
        yield group


def remove_merged(files: Files, directory: Path, bases: list[int]) -> list[int]:
    """Remove what compaction made one segment of and left when it died; the first offsets of those that stay."""
    left: list[int] = []
    following = 0
    for base in bases:
        path = segment_path(directory, base)
        if base < following:
            with contextlib.suppress(FileNotFoundError):
                files.remove(path)
            continue
        left.append(base)
        header = read_header(files, path)
        following = 0 if header is None else header.following or 0
    return left
