"""Events to a local log: the bus of a machine that has no broker. The same records, key and headers included.

An answer means what `fsync` says: with `always` and `interval` that the records are on the disk, with `none` that they
are in the kernel, and survive the process only. Each spool's listener writes to a partition of its own.

Holds the limits of a local log in partitions that nobody writes to, on an executor: no batch waits for it.
"""

from __future__ import annotations

import errno
import functools
import logging
import os
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from headwater.config import Bytes, Config, Seconds, read_config, read_usable_config
from headwater.errors import ConfigurationError, HeadwaterError, TerminalError, TransientError
from headwater.journal import (
    Files,
    Fsync,
    Journal,
    JournalEntry,
    JournalOptions,
    LocalLog,
    OsFiles,
    RecordTooLargeError,
    StorageError,
    SyncFailedError,
)
from headwater.journal.filesystem import file_system_of
from headwater.spi import WRONG_KEY, CheckResult, ListenerContext, RecordBatch, RefusedRecordError, SpoolPosition

_LOG = logging.getLogger(__name__)
_INTERVAL_SECONDS: Final = 3600.0
"""Seconds between rounds."""


class LogMaintenance:
    """Runs one round at a time: when it is first asked, and then once an hour."""

    def __init__(self, log: LocalLog, executor: Executor) -> None:
        self._log = log
        self._executor = executor
        self._stopped = threading.Event()
        self._round: Future[None] | None = None
        self._started = float("-inf")

    def run_if_due(self) -> None:
        """Start a round if the last one is long enough ago. Called after each batch; costs a look at the clock."""
        now = time.monotonic()
        if now - self._started < _INTERVAL_SECONDS or (self._round is not None and not self._round.done()):
            return
        self._started = now
        self._round = self._executor.submit(self._run)

    def stop(self) -> None:
        """Start no other round, and log nothing more."""
        self._stopped.set()

    def _run(self) -> None:
        try:
            dropped = 0 if self._stopped.is_set() else self._log.trim()
        except (HeadwaterError, OSError) as e:
            if not self._stopped.is_set():
                _LOG.info("the limits of the log %s can't be held now: %s", self._log.directory, e)
            return
        if dropped:
            _LOG.info("%d segments of %s were beyond its limits, and are dropped", dropped, self._log.directory)


_SYNC_SECONDS: Final = 1.0
"""A batch waits so long for the disk at most; after that it is `flush` that waits, as long as it may."""
_MIN_LOG_BYTES: Final = 64 << 10
_MAX_RECORD_BYTES: Final = 64 << 20
"""Whatever lay in a spool goes into a log."""
_UNUSABLE_PLACE: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG}
)
"""What the kernel says of a directory that somebody must see to; anything else can pass."""
_CANNOT_BE_MADE: Final = _UNUSABLE_PLACE | {errno.ENOENT}
"""Beside those, of one that was to be made with all that is above it: its file system takes none. Of a file in it
ENOENT can mean that somebody is just removing the log."""


def data_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Where a log is kept that no `dir` names: `log` in the user's data directory of headwater."""
    own, shared = environment.get("HEADWATER_DATA"), environment.get("XDG_DATA_HOME")
    if own:
        return Path(own, "log")
    return Path(shared, "headwater", "log") if shared else Path("~", ".local", "share", "headwater", "log")


class LogConfig(Config):
    """What stands under `spark.headwater.log.`. The limits hold for each partition: one for each driver at one time.
    Each driver also holds its own limits in the partitions that nobody writes to, when it begins and each hour."""

    dir: Path = Field(default_factory=data_directory)
    """A directory on a local disk. Without it `$HEADWATER_DATA/log` or `$XDG_DATA_HOME/headwater/log`, where these are
    set."""
    fsync: Fsync = Fsync.INTERVAL
    """When events are brought to the disk: `always` (before a batch is acknowledged), `interval`, or `none` (when the
    kernel sees fit)."""
    fsync_interval: Annotated[Seconds, Field(gt=0)] = 1.0
    """How often that is, with `interval`."""
    max_bytes: Annotated[Bytes, Field(ge=_MIN_LOG_BYTES)] = 1 << 30
    """The limit of each partition. Above it the oldest segment goes; who hasn't read it learns what was lost."""
    max_age: Annotated[Seconds, Field(gt=0)] | None = None
    """Segments whose newest record is older go. Without it age doesn't matter."""

    def journal_options(self) -> JournalOptions:
        """With `always` it is the listener that waits for the disk, because it can give up waiting."""
        return JournalOptions(
            fsync=Fsync.NONE if self.fsync is Fsync.NONE else Fsync.INTERVAL,
            fsync_interval=self.fsync_interval,
            max_bytes=self.max_bytes,
            max_age=self.max_age,
            max_record_bytes=_MAX_RECORD_BYTES,
        )


class LogFactory:
    """The entry point `log`."""

    def __init__(self, files: Files | None = None) -> None:
        self._files = files or OsFiles()

    def create(self, context: ListenerContext) -> LogListener:
        report = partial(context.report_problem, WRONG_KEY)
        config = read_usable_config(LogConfig, context.configuration, report, shown=context.prefix)
        directory = _make_directory(config.dir, f"{context.prefix}dir")
        _warn_of_file_system(directory, f"{context.prefix}dir")
        return LogListener(directory, config, context, self._files)

    def diagnose(self, context: ListenerContext) -> Iterator[CheckResult]:
        """For `headwater doctor`."""
        from headwater.publishers.checks import check_log  # noqa: PLC0415 - no driver needs it

        config = read_config(LogConfig, context.configuration, shown=context.prefix)
        directory = _make_directory(config.dir, f"{context.prefix}dir")
        return check_log(directory, config.journal_options(), config.max_bytes, context, self._files)


class LogListener:
    """Writes to one partition, which it takes with the first batch."""

    def __init__(self, directory: Path, config: LogConfig, context: ListenerContext, files: Files) -> None:
        """Use `LogFactory`."""
        self._directory = directory
        self._config = config
        self._executor = context.executor
        self._files = files
        self._journal: Journal | None = None
        self._maintenance: LogMaintenance | None = None
        self._received_end: SpoolPosition | None = None
        self._appended: SpoolPosition | None = None
        """Up to here everything is in the journal; what is handed over again is known by it."""
        self._answer: SpoolPosition | None = None
        self._synced = time.monotonic()
        self._inode = -1

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        self._received_end = batch.end
        journal = self._open()
        self._append(journal, batch)
        if self._maintenance is not None:
            self._maintenance.run_if_due()
        if self._config.fsync is Fsync.NONE:
            self._answer = self._appended
        elif self._config.fsync is Fsync.ALWAYS or time.monotonic() - self._synced >= self._config.fsync_interval:
            self._sync(journal, _SYNC_SECONDS)
        return self._answer

    def flush(self, timeout: float) -> SpoolPosition | None:
        if self._journal is not None and self._answer != self._appended:
            self._sync(self._journal, timeout)
        return self._answer

    def close(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        journal, is_synced = self._journal, True
        self._stop_maintenance()
        if journal is not None:
            try:
                self.flush(timeout)
            except StorageError:
                is_synced = False
            is_synced = journal.close(max(0.0, deadline - time.monotonic())) and is_synced
        return is_synced and self._answer == self._received_end

    def _open(self) -> Journal:
        """The partition; a new one where somebody removed the log under it, and what isn't answered goes there."""
        if self._journal is not None and not self._is_partition_there(self._journal):
            self._stop_maintenance()
            self._journal.close(0)
            self._journal = None
            if self._appended != self._answer:
                self._appended = self._answer
                raise TransientError(
                    f"the log {self._directory} was removed while it was written to: a new one is begun"
                )
        if self._journal is None:
            try:
                log = LocalLog.open(self._directory, self._config.journal_options(), files=self._files)
                self._journal = log.writer()
                self._maintenance = LogMaintenance(log, self._executor)
                self._inode = self._journal.directory.stat().st_ino
            except StorageError as e:
                raise _classify_error(e, self._directory, _CANNOT_BE_MADE) from e
        return self._journal

    def _stop_maintenance(self) -> None:
        if self._maintenance is not None:
            self._maintenance.stop()

    def _is_partition_there(self, journal: Journal) -> bool:
        try:
            return journal.directory.stat().st_ino == self._inode
        except OSError:
            return False

    def _append(self, journal: Journal, batch: RecordBatch) -> None:
        records = [record for record in batch if self._appended is None or record.position > self._appended]
        try:
            journal.append_many([JournalEntry(record.data, record.key, record.headers) for record in records])
        except StorageError as e:
            if e.appended:
                self._appended = records[e.appended - 1].position
            raise _classify_error(e, self._directory) from e
        except RecordTooLargeError as e:  # none of them was written
            raise RefusedRecordError(str(e), max(records, key=lambda entry: len(entry.data)).position) from e
        self._appended = batch.end

    def _sync(self, journal: Journal, timeout: float) -> None:
        try:
            if journal.flush(timeout):
                self._answer = self._appended
                self._synced = time.monotonic()
        except SyncFailedError:
            self._appended = self._answer  # what lies behind may not survive the machine: append it again
            raise


@functools.cache
def _warn_of_file_system(directory: Path, key: str) -> None:
    """Once for each place, however many listeners write to it."""
    if doubts := file_system_of(directory).doubts:
        _LOG.warning("%s: %s is no good place for a log: %s", key, directory, doubts)


def _make_directory(directory: Path, key: str) -> Path:
    """The directory, made if absent. Reported now is only what somebody must see to: a full disk can have room
    again."""
    try:
        path = directory.expanduser()
        if not path.is_absolute():
            why = (
                "is a URL"
                if directory.parts[:1] and directory.parts[0].endswith(":")
                else "depends on where the driver is started"
            )
            raise ConfigurationError(f"{key}: {directory} {why}: write an absolute path on a local disk")
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as e:
        if e.errno in _CANNOT_BE_MADE:
            raise ConfigurationError(f"{key}: {_describe_advice(directory, e)}") from e
        path = directory.expanduser()
    except RuntimeError as e:  # no home
        raise ConfigurationError(f"{key}: {directory}: {e}: write an absolute path") from e
    return path


def _classify_error(error: StorageError, directory: Path, wrong: Collection[int] = _UNUSABLE_PLACE) -> HeadwaterError:
    """A TerminalError where the place is wrong, which no waiting mends; else what it is."""
    cause = error.__cause__
    if isinstance(cause, OSError) and cause.errno in wrong:
        return TerminalError(_describe_advice(directory, cause))
    return error


def _describe_advice(directory: Path, cause: OSError) -> str:
    return (
        f"{directory} can't be written to ({cause.strerror}): name a directory on a local disk that the driver's "
        "user may write to, or give that user the right"
    )
