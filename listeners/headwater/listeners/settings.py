"""The configuration of a driver, as far as it is no listener's own: what stands under `spark.headwater.`

    settings, faults = read_settings(dict(spark.sparkContext.getConf().getAll()))

Nothing is raised: what is wrong is reported, its default holds, and the job goes on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import combinations
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, SecretStr

from headwater import plugins
from headwater.config import Bytes, Config, Seconds, cache_directory, read_config
from headwater.config.model import Keys
from headwater.errors import ConfigurationError
from headwater.events.identity import Namespaces
from headwater.events.jobs import LineageRetention
from headwater.events.names import DEFAULT_JOB_NAMESPACE
from headwater.journal import Fsync
from headwater.listeners.catalog_stores import find_catalog_stores
from headwater.spi.factories import LISTENERS, RESERVED_NAMES, name_and_reference

PREFIX: Final = "spark.headwater."
_LISTENER_LISTS: Final = ("listeners", "catalog.listeners", "job.listeners")
_MIN_SPOOL_BYTES: Final = 64 * 1024
_MIN_SIMILARITY: Final = 0.6
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_OTHERWISE: Final = r"^\s*(fail|latest|wait\s+[\d.]+\s*(ms|s|m|min|h)?)\s*$"
DEFAULT_LISTENER: Final = "log"
"""Which listener there is where none is named: a local log, which a new user can read at once. An empty `listeners`
is none."""

Text = Annotated[str, Field(min_length=1)]


_ON_END: Final = {
    "keep": LineageRetention.KEEP,
    "delete-table": LineageRetention.DELETE_TABLE,
    "delete-all": LineageRetention.DELETE_ALL,
}


def parse_on_end(text: object) -> LineageRetention | None:
    """What becomes of a job's lineage at its end; a ValueError that names the nearest right word."""
    if text is None or isinstance(text, LineageRetention):
        return text
    word = str(text).strip().lower().replace("_", "-")
    if word not in _ON_END:
        near = get_close_matches(word, _ON_END, n=1, cutoff=_MIN_SIMILARITY)
        raise ValueError(f"is none of {', '.join(_ON_END)}" + (f": did you mean {near[0]}?" if near else ""))
    return _ON_END[word]


def spool_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Where spools are kept that no `spool.dir` names: `spool` in the user's cache directory of headwater."""
    return cache_directory(environment) / "spool"


class Settings(Config):
    """What stands under `spark.headwater.`, apart from the listeners' own sections."""

    enabled: bool = False
    """Whether headwater is in this driver, where it is installed by configuration alone."""
    listeners: tuple[str, ...] = ()
    """Listeners that get every event: `kafka, audit=mycompany.audit:AuditFactory`. Where no list of listeners is set it
    is `log`; an empty list is nobody."""
    catalog_listeners: tuple[str, ...] = ()
    """Listeners that get only events about catalogs, and administration."""
    job_listeners: tuple[str, ...] = ()
    """Listeners that get only events about jobs, and administration."""

    job_name: Text | None = None
    """What the job is called; a session can `SET` it. Without it a name is made of the application and the table."""
    job_namespace: Text = DEFAULT_JOB_NAMESPACE
    """Keeps jobs of different teams apart that have the same name; a session can `SET` it."""
    validating: bool = False
    """Whether the application runs for `headwater validate`, which sets it. Its jobs are in a namespace of their own
    then, whatever else is set."""
    job_code_version: Text | None = None
    """The version of the job's code. Without it the variable `HEADWATER_JOB_CODE_VERSION`."""
    job_heartbeat: Annotated[Seconds, Field(ge=1)] = 60.0
    """How often an application emits a Heartbeat."""

    spool_dir: Path = Field(default_factory=spool_directory)
    """A directory on a local disk. Without it `$HEADWATER_CACHE/spool` or `$XDG_CACHE_HOME/headwater/spool`, where
    these are set."""
    spool_fsync: Fsync = Fsync.INTERVAL
    """When events are brought to the disk: `always` (before one counts as appended), `interval`, or `none` (when the
    kernel sees fit). With each of them they survive the process; with `always` also the machine."""
    spool_fsync_interval: Annotated[Seconds, Field(gt=0)] = 1.0
    """How often that is, with `interval`."""
    spool_max_bytes: Annotated[Bytes, Field(ge=_MIN_SPOOL_BYTES)] = 1 << 30
    """Above it the oldest events go, for those listeners only that haven't got them; a Gap says which."""
    spool_linger: Annotated[Seconds, Field(ge=0)] | None = None
    """How long the shipper, the process that delivers to Kafka and databases, outlives a driver that left something.
    Without it 60 s, and 0 in a container that ends with the driver."""
    spool_handover: Text | None = None
    """A directory on a shared file system, or a URI that Hadoop knows, where a driver writes at its end what isn't
    delivered, as one file: for disks that go with the pod."""
    spool_handover_timeout: Annotated[Seconds, Field(gt=0)] = 10.0
    """How much longer a driver's end may take where there is something to hand over."""

    capture_reads: bool = False
    """Whether statements that only read make events too."""
    capture_sql: bool = False
    """Whether events may hold SQL text and literals. Secrets never are in an event."""
    capture_hooks: Literal["auto", "off"] = "auto"
    """Whether hooks in the table formats' libraries see commits in the thread that makes them. With `off` some
    snapshots are inexact, and a Gap says which."""
    capture_wait: Seconds = 10
    """How long a new SparkContext waits until capture is ready. A start that takes longer goes on in the background.
    What the job does meanwhile is kept and read then; a Gap says what may be missing."""
    capture_queue_count: Annotated[int, Field(gt=0)] = 20_000
    """How many records may wait between the driver's JVM and Python; what is above it is dropped, and a Gap says how
    many."""
    capture_queue_bytes: Annotated[Bytes, Field(gt=0)] = 64 << 20
    """How many bytes of them may wait."""
    capture_plan_bytes: Annotated[Bytes, Field(gt=0)] = 64 << 20
    """About how many bytes of the driver's Python the plans of statements may take that are kept because a statement
    like one before needs them."""

    redaction_keep: str = ""
    """Names of options, properties and settings whose values are no secret, whatever is in them: with commas between
    them, and each as the whole name or as its last parts."""
    redaction_key_file: Path | None = None
    """A file of 16 bytes or more, which only the driver's user reads. By it the values that are hidden get a hash, so
    that a change is seen; drivers with one key are comparable. Without it `redaction.key` in headwater's cache
    directory, which is made."""

    metrics_port: Annotated[int, Field(ge=0, le=65535)] | None = None
    """The port at which metrics are served for Prometheus; 0 is any port that is free."""
    metrics_host: Text = "127.0.0.1"
    """The address at which that port is opened."""
    metrics_file: Path | None = None
    """A file that metrics are written to for node_exporter's textfile collector, or a directory for one."""
    metrics_file_interval: Annotated[Seconds, Field(ge=1)] = 10.0
    """How often that file is written."""

    read_consistent: bool = False
    """Whether queries over several tables read versions of them that belong together. A session can `SET` it, where the
    application's configuration has any key of `read`."""
    read_consistent_otherwise: Annotated[str, Field(pattern=_OTHERWISE)] = "fail"
    """What happens where no versions belong together, or that isn't known: `fail`, `latest` (they are read as they are
    now, and a warning says why), or `wait 60s` (and then fail). A session can `SET` it."""
    read_consistent_allowed: tuple[str, ...] = ()
    """Tables that are read as they are now in such queries; `*` stands for anything. A session can `SET` it."""
    read_consistent_timeout: Annotated[Seconds, Field(gt=0)] = 5.0
    """How long a statement waits for the store's answer. A session can `SET` it."""
    read_consistent_max_age: Annotated[Seconds, Field(ge=0)] = 1.0
    """How old the store's answer may be, if another statement got it. Its versions belong together, and newer ones may
    have come since. With 0 each statement asks. A session can `SET` it."""
    read_consistent_store: SecretStr | None = None
    """The URL of the lineage store. Without it the store that the listener `jdbc` writes to, else `HEADWATER_STORE`,
    whose variables also give passwords."""

    read_branch_versions: bool = False
    """Whether SQL can name a snapshot by its branch: `VERSION AS OF 'branch.tag'`, or `'branch.snapshot'`. A session
    can `SET` it, where the application's configuration has any key of `read`."""

    lineage_repeat: Annotated[Seconds, Field(gt=0)] = 3600.0
    """After how long job lineage that was emitted is emitted again."""
    lineage_on_end: Annotated[LineageRetention | None, BeforeValidator(parse_on_end)] = Field(
        default=None, alias="lineage.on-job-end"
    )
    """What becomes of a job's lineage when a run of it ends: `keep`, `delete-table` (table lineage goes), or
    `delete-all` (every commit too)."""

    namespaces: Mapping[str, str] = Field(default_factory=dict)
    """One name for many hosts: `namespaces.prod = broker-1:9092,broker-2:9092,*.example.com`."""
    tags: Mapping[str, str] = Field(default_factory=dict)
    """Tags of the job: `tags.team = sales`."""
    parent_namespace: Text | None = None
    """The namespace of the job that started this application. Without `parent.*` OpenLineage's keys and variables
    count, then Airflow's variables."""
    parent_name: Text | None = None
    """The name of the job that started this application."""
    parent_run: Text | None = None
    """The run of the job that started this application."""
    parent_root_namespace: Text | None = None
    """The namespace of the job at the root of the chain of parents."""
    parent_root_name: Text | None = None
    """The name of the job at the root of the chain of parents."""
    parent_root_run: Text | None = None
    """The run of the job at the root of the chain of parents."""

    @property
    def handover_path(self) -> Path | None:
        """`spool.handover` where it is a path of this machine."""
        return None if self.spool_handover is None or self.handover_uri else Path(self.spool_handover).absolute()

    @property
    def handover_uri(self) -> str | None:
        """`spool.handover` where Hadoop has to be asked: `hdfs://…`, `s3a://…`, `file:/…`."""
        return self.spool_handover if _URI.match(self.spool_handover or "") else None

    @property
    def listener_names(self) -> tuple[str, ...]:
        """What the configured listeners are called; those with an impossible name are left out."""
        items = (*self.listeners, *self.catalog_listeners, *self.job_listeners)
        return tuple(dict.fromkeys(name for item in items for name in _listener_name_of(item)))


def read_settings(conf: Mapping[str, str]) -> tuple[Settings, tuple[ConfigurationError, ...]]:
    """The settings in a Spark configuration, and what is wrong with it: one error for each key.

    A key or value that is wrong counts as not given; so does an option of a catalog that chooses a store which nobody
    fills. Keys below the name of a configured listener are that listener's.
    """
    given = {key[len(PREFIX) :]: value for key, value in conf.items() if key.startswith(PREFIX)}
    if not any(key in given for key in _LISTENER_LISTS):
        given["listeners"] = DEFAULT_LISTENER
    listeners = _listener_names_in(given)
    right: dict[str, str] = {}
    faults: list[ConfigurationError] = []
    for key, value in given.items():
        if key.partition(".")[0] in listeners and "." in key:
            continue
        fault = _find_fault(key, value, listeners)
        if fault is None:
            right[key] = value
        else:
            faults.append(fault)
    for key, fault in _find_wrong_namespaces(right):
        right.pop(key, None)
        faults.append(fault)
    faults += find_catalog_stores(conf, listeners)
    return read_config(Settings, right, shown=PREFIX), tuple(faults)


def _listener_names_in(given: Mapping[str, str]) -> frozenset[str]:
    items = (item for key in _LISTENER_LISTS for item in given.get(key, "").split(",") if item.strip())
    return frozenset(name for item in items for name in _listener_name_of(item))


def _listener_name_of(item: str) -> Iterator[str]:
    try:
        yield name_and_reference(item)[0]
    except ConfigurationError:
        return  # reported by who makes the listeners


def _find_fault(key: str, value: str, listeners: frozenset[str]) -> ConfigurationError | None:
    """What is wrong with a key and its value, if anything: looked at alone, so that one doesn't hide another."""
    if not _is_known(key):
        return ConfigurationError(_describe_unknown_key(key, listeners))
    try:
        read_config(Settings, {key: value}, shown=PREFIX)
    except ConfigurationError as e:
        return ConfigurationError(f"{e}; what holds now is the default")
    return None


def _is_known(key: str) -> bool:
    keys = Keys.of(Settings)
    return key in keys.fields or key.rstrip(".") in keys.sections or keys.section_of(key) is not None


def _describe_unknown_key(key: str, listeners: frozenset[str]) -> str:
    """Words for a key that nobody reads, with the nearest right one; it may be a listener's whose name is wrong."""
    section, is_inside, rest = key.partition(".")
    is_listener = bool(is_inside) and section not in RESERVED_NAMES
    known = Keys.of(Settings).spellings("")
    nearest = get_close_matches(key, known, n=1, cutoff=_MIN_SIMILARITY)
    installed = plugins.names(LISTENERS) if is_listener else ()
    if section in installed:  # the key is right, and what it is of isn't asked for, or under a wrong name
        wrong = get_close_matches(section, listeners.difference(installed), n=1, cutoff=_MIN_SIMILARITY)
        advice = f"write {section} for {wrong[0]} in" if wrong else f"name {section} in"
        return f"{PREFIX}{key} is a key of the listener {section}, which isn't asked for: {advice} {PREFIX}listeners"
    if is_listener and (called := get_close_matches(section, listeners, n=1, cutoff=_MIN_SIMILARITY)):
        nearest = [f"{called[0]}.{rest}"]
    if nearest:
        return f"there is no key {PREFIX}{key}: did you mean {PREFIX}{nearest[0]}?"
    if is_listener:
        called = sorted(listeners) or ["none"]
        return (
            f"there is no key {PREFIX}{key}, because no listener is called {section} (there is {', '.join(called)}): "
            f"name it in {PREFIX}listeners, or remove the key"
        )
    there = ", ".join(PREFIX + key for key in known if not is_inside or key.startswith(f"{section}."))
    return f"there is no key {PREFIX}{key}: there is {there or 'none in that section'}"


def _find_wrong_namespaces(right: Mapping[str, str]) -> Iterator[tuple[str, ConfigurationError]]:
    """Entries that are wrong, and pairs of which nobody can say which one is meant: both are out then."""
    before = "namespaces."
    sound: dict[str, str] = {}
    for key in sorted(key for key in right if key.startswith(before)):
        name = key[len(before) :]
        fault = _find_namespace_fault({name: right[key]})
        if fault is None:
            sound[name] = right[key]
        else:
            yield key, fault
    for first, second in combinations(sound, 2):
        fault = _find_namespace_fault({first: sound[first], second: sound[second]})
        if fault is not None:
            yield before + first, fault
            yield before + second, fault


def _find_namespace_fault(entries: Mapping[str, str]) -> ConfigurationError | None:
    try:
        Namespaces.parse(entries)
    except ConfigurationError as e:
        return ConfigurationError(f"{PREFIX}{e}; without effect until then")
    return None
