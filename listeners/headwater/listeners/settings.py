"""The configuration of a driver, as far as it is no listener's own: what stands under `spark.headwater.`

    settings, faults = read_settings(dict(spark.sparkContext.getConf().getAll()))

Nothing is raised: what is wrong is told, its default holds, and the job goes on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import combinations
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from headwater.config import Bytes, Config, Seconds, read_config
from headwater.config.model import Keys
from headwater.errors import ConfigurationError
from headwater.events.identity import Namespaces
from headwater.events.jobs import OnJobEnd
from headwater.events.names import DEFAULT_JOB_NAMESPACE
from headwater.journal import Fsync
from headwater.spi import RESERVED_NAMES, name_and_reference

PREFIX: Final = "spark.headwater."
_LISTS: Final = ("listeners", "catalog.listeners", "job.listeners")
_SMALLEST_SPOOL: Final = 64 * 1024
_CLOSE: Final = 0.6
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
DEFAULT_LISTENER: Final = "log"
"""Who is told where nobody is named: a local log, which a new user can read at once. An empty `listeners` is nobody."""

Text = Annotated[str, Field(min_length=1)]


_POLICIES: Final = {
    "keep": OnJobEnd.KEEP,
    "delete-table": OnJobEnd.DELETE_TABLE,
    "delete-all": OnJobEnd.DELETE_ALL,
}


def policy_of(text: object) -> OnJobEnd | None:
    """What becomes of a job's lineage at its end; a ValueError that names the nearest right word."""
    if text is None or isinstance(text, OnJobEnd):
        return text
    word = str(text).strip().lower().replace("_", "-")
    if word not in _POLICIES:
        near = get_close_matches(word, _POLICIES, n=1, cutoff=_CLOSE)
        raise ValueError(f"is none of {', '.join(_POLICIES)}" + (f": did you mean {near[0]}?" if near else ""))
    return _POLICIES[word]


def spool_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Where spools are kept that no `spool.dir` names: `spool` in the user's cache directory of headwater."""
    own, shared = environment.get("HEADWATER_CACHE"), environment.get("XDG_CACHE_HOME")
    if own:
        return Path(own, "spool")
    return Path(shared, "headwater", "spool") if shared else Path("~", ".cache", "headwater", "spool")


class Settings(Config):
    """What stands under `spark.headwater.`, apart from the listeners' own sections."""

    enabled: bool = False
    listeners: tuple[str, ...] = ()
    """Listeners that are told everything: `kafka, audit=mycompany.audit:AuditFactory`."""
    catalog_listeners: tuple[str, ...] = ()
    """Those that are told what happens to catalogs, and administration, only."""
    job_listeners: tuple[str, ...] = ()
    """Those that are told what jobs do, and administration, only."""

    job_name: Text | None = None
    job_namespace: Text = DEFAULT_JOB_NAMESPACE
    job_code_version: Text | None = None
    """Which version of its code a job is: nobody else can tell."""
    job_heartbeat: Annotated[Seconds, Field(ge=1)] = 60.0
    """How often an application tells that it is alive."""

    spool_dir: Path = Field(default_factory=spool_directory)
    spool_fsync: Fsync = Fsync.INTERVAL
    spool_fsync_interval: Annotated[Seconds, Field(gt=0)] = 1.0
    spool_max_bytes: Annotated[Bytes, Field(ge=_SMALLEST_SPOOL)] = 1 << 30
    spool_handover: Text | None = None
    """A directory on a shared file system, or a URI that Hadoop knows, that takes at stop what isn't delivered: for
    disks that go with the pod."""
    spool_handover_timeout: Annotated[Seconds, Field(gt=0)] = 10.0
    """An end may take so much longer where there is something to hand over."""

    capture_reads: bool = False
    """Whether statements that only read are told too."""
    capture_sql: bool = False
    """Whether SQL text and literals may be told."""
    capture_hooks: Literal["auto", "off"] = "auto"
    """Whether the formats' own hooks in committing threads are used."""
    capture_queue_count: Annotated[int, Field(gt=0)] = 20_000
    """How many texts out of Spark may wait to be looked at; what is above it is dropped, and told as a Gap."""
    capture_queue_bytes: Annotated[Bytes, Field(gt=0)] = 64 << 20

    metrics_port: Annotated[int, Field(ge=0, le=65535)] | None = None
    """Where metrics are served for Prometheus; 0 is any port that is free, None is not at all."""
    metrics_host: Text = "127.0.0.1"
    metrics_file: Path | None = None
    """A file that metrics are written to for node_exporter's textfile collector, or a directory for one."""
    metrics_file_interval: Annotated[Seconds, Field(ge=1)] = 10.0

    lineage_repeat: Annotated[Seconds, Field(gt=0)] = 3600.0
    """After how long the shape of a write is told again."""
    lineage_on_end: Annotated[OnJobEnd | None, BeforeValidator(policy_of)] = Field(
        default=None, alias="lineage.on-job-end"
    )
    """What is to become of a job's lineage when a run of it ends: keep, delete-table (where tables come from), or
    delete-all (and every commit)."""

    namespaces: Mapping[str, str] = Field(default_factory=dict)
    """One name for many hosts; `Namespaces.parse` takes it, without an error once `read_settings` gave it."""
    tags: Mapping[str, str] = Field(default_factory=dict)
    parent_namespace: Text | None = None
    parent_name: Text | None = None
    parent_run: Text | None = None
    parent_root_namespace: Text | None = None
    parent_root_name: Text | None = None
    parent_root_run: Text | None = None

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
        return tuple(dict.fromkeys(name for item in items for name in _name_of(item)))


def read_settings(conf: Mapping[str, str]) -> tuple[Settings, tuple[ConfigurationError, ...]]:
    """The settings in a Spark configuration, and what is wrong with it: one error for each key.

    A key or value that is wrong counts as not given. Keys below the name of a configured listener are that listener's.
    """
    given = {key[len(PREFIX) :]: value for key, value in conf.items() if key.startswith(PREFIX)}
    if not any(key in given for key in _LISTS):
        given["listeners"] = DEFAULT_LISTENER
    listeners = _listeners_in(given)
    right: dict[str, str] = {}
    faults: list[ConfigurationError] = []
    for key, value in given.items():
        if key.partition(".")[0] in listeners and "." in key:
            continue
        fault = _fault_of(key, value, listeners)
        if fault is None:
            right[key] = value
        else:
            faults.append(fault)
    for key, fault in _wrong_namespaces(right):
        right.pop(key, None)
        faults.append(fault)
    return read_config(Settings, right, shown=PREFIX), tuple(faults)


def _listeners_in(given: Mapping[str, str]) -> frozenset[str]:
    items = (item for key in _LISTS for item in given.get(key, "").split(",") if item.strip())
    return frozenset(name for item in items for name in _name_of(item))


def _name_of(item: str) -> Iterator[str]:
    try:
        yield name_and_reference(item)[0]
    except ConfigurationError:
        return  # told by who makes the listeners


def _fault_of(key: str, value: str, listeners: frozenset[str]) -> ConfigurationError | None:
    """What is wrong with a key and its value, if anything: looked at alone, so that one doesn't hide another."""
    if not _is_known(key):
        return ConfigurationError(_unknown(key, listeners))
    try:
        read_config(Settings, {key: value}, shown=PREFIX)
    except ConfigurationError as e:
        return ConfigurationError(f"{e}; what holds now is the default")
    return None


def _is_known(key: str) -> bool:
    keys = Keys.of(Settings)
    return key in keys.fields or key.rstrip(".") in keys.sections or keys.section_of(key) is not None


def _unknown(key: str, listeners: frozenset[str]) -> str:
    """Words for a key that nobody reads, with the nearest right one; it may be a listener's whose name is wrong."""
    section, is_inside, rest = key.partition(".")
    is_listener = bool(is_inside) and section not in RESERVED_NAMES
    known = Keys.of(Settings).told("")
    nearest = get_close_matches(key, known, n=1, cutoff=_CLOSE)
    if is_listener and (called := get_close_matches(section, listeners, n=1, cutoff=_CLOSE)):
        nearest = [f"{called[0]}.{rest}"]
    if nearest:
        return f"there is no key {PREFIX}{key}: did you mean {PREFIX}{nearest[0]}?"
    if is_listener:
        called = sorted(listeners) or ["none"]
        return (
            f"there is no key {PREFIX}{key}, because no listener is called {section} (there is {', '.join(called)}): "
            f"name it in {PREFIX}listeners, or remove the key"
        )
    there = ", ".join(PREFIX + each for each in known if not is_inside or each.startswith(f"{section}."))
    return f"there is no key {PREFIX}{key}: there is {there or 'none in that section'}"


def _wrong_namespaces(right: Mapping[str, str]) -> Iterator[tuple[str, ConfigurationError]]:
    """Entries that are wrong, and pairs of which nobody can say which one is meant: both are out then."""
    before = "namespaces."
    sound: dict[str, str] = {}
    for key in sorted(each for each in right if each.startswith(before)):
        name = key[len(before) :]
        fault = _namespaces_fault({name: right[key]})
        if fault is None:
            sound[name] = right[key]
        else:
            yield key, fault
    for first, second in combinations(sound, 2):
        fault = _namespaces_fault({first: sound[first], second: sound[second]})
        if fault is not None:
            yield before + first, fault
            yield before + second, fault


def _namespaces_fault(entries: Mapping[str, str]) -> ConfigurationError | None:
    try:
        Namespaces.parse(entries)
    except ConfigurationError as e:
        return ConfigurationError(f"{PREFIX}{e}; without effect until then")
    return None
