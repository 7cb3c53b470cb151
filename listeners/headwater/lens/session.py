"""Puts a lens into a SparkSession, and takes it out; refuses sessions of Spark Connect, whose driver is elsewhere.

Topics of Kafka under a lens have names, `kafka://host:port/topic`, and versions, which are offsets.
"""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, cast

from headwater.errors import ConfigurationError
from headwater.events.identity.hosts import endpoint, normal_host
from headwater.events.identity.namespaces import Namespaces
from headwater.events.identity.text import IdentityError
from headwater.lens.java_calls import JavaCallGuard
from headwater.lens.java_classes import LensClasses
from headwater.lens.model import Lens, LensError, Refusals, TargetEffect, TargetUse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def refuse_remote_sessions(who: str, environment: Mapping[str, str] = os.environ) -> None:
    """Have a session of Spark Connect end the program; `who` asked for the lens, in its message."""
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - the program's own
    except ImportError as e:
        raise ConfigurationError(
            f"{who}: pyspark can't be imported before the script runs ({e}): put it on PYTHONPATH, "
            "with $SPARK_HOME/python say, since a lens has to be in every session that the script makes"
        ) from e
    message = f"{who}: a session of Spark Connect can't have a lens, and would read and write the real tables"
    if environment.get("SPARK_REMOTE") or environment.get("SPARK_CONNECT_MODE_ENABLED"):
        raise SystemExit(f"{message}: unset SPARK_REMOTE and SPARK_CONNECT_MODE_ENABLED")

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise SystemExit(message)

    builder: Any = SparkSession.Builder
    original = builder.getOrCreate

    def get_or_create(self: Any) -> Any:
        options = self._options
        if options.get("spark.remote") or options.get("spark.api.mode", "classic") == "connect":
            refuse()
        return original(self)

    builder.getOrCreate = get_or_create
    if hasattr(builder, "create"):
        builder.create = refuse  # of Spark Connect alone
    if find_spec("grpc") is not None:  # without it there is no Connect
        with suppress(ImportError):
            from pyspark.sql.connect.session import SparkSession as RemoteSession  # noqa: PLC0415

            remote: Any = RemoteSession
            remote.__init__ = refuse


_SCHEME: Final = "kafka://"
_DEFAULT_PORT: Final = 9092
_EXAMPLE: Final = '{"0":42,"1":17}'


def is_topic(name: str) -> bool:
    """Return whether a name of a lens is that of a topic."""
    return name.lower().startswith(_SCHEME)


def normal_name(name: str, namespaces: Namespaces) -> str:
    """Return the name that lineage has for it: `kafka://host:port/topic`, or with the cluster's logical name."""
    cluster, slash, topic = name[len(_SCHEME) :].rpartition("/")
    if not slash or not cluster or not topic:
        raise LensError(f"{name!r} names no topic: write it as kafka://host:port/topic")
    try:
        place = endpoint(cluster)
        if place.port is None and namespaces.logical(place) != place.host:
            place = place._replace(port=_DEFAULT_PORT)
    except IdentityError as e:
        raise LensError(f"{name!r} names no topic, since {e}") from e
    return f"{_SCHEME}{place}/{topic}"


def normal_version(name: str, version: int | str) -> str:
    """Return a topic's version as JSON without blanks: by partition where it ends, or a range."""
    try:
        offsets: Any = json.loads(str(version))
    except ValueError:
        offsets = None
    if not isinstance(offsets, dict) or not offsets or not all(map(_is_range, offsets.items())):
        raise LensError(
            f"{name} can't be pinned to {version!r}: a topic's version is the offset behind the last record of each "
            f'partition, as in {_EXAMPLE}, or a range, as in {{"0":[40,42]}}'
        )
    return json.dumps(offsets, separators=(",", ":"))


def _is_range(item: tuple[str, Any]) -> bool:
    partition, offsets = item
    is_pair = isinstance(offsets, list) and len(offsets) == 2
    bounds = cast("list[int]", offsets if is_pair else [0, offsets])
    are_numbers = all(type(bound) is int and bound >= 0 for bound in bounds)
    return bool(re.fullmatch("[0-9]+", partition)) and are_numbers and bounds[0] <= bounds[1]


def driver_host() -> str:
    """Return the name by which lineage knows this machine."""
    return normal_host(socket.gethostname())


_PATH: Final = "/"
_OTHER_ANALYZER: Final = "spark.sql.analyzer.singlePassResolver.enabled"
_RULE: Final = "headwater.lens.LensRelations"
"""Consistent reads have another one, which a lens stands before."""
_lock: Final = threading.Lock()


def lens(
    spark: SparkSession,
    *,
    pins: Mapping[str, int | str] | None = None,
    generations: Mapping[str, str] | None = None,
    redirects: Mapping[str, str] | None = None,
    allowed: Collection[str] = (),
    name: str = "lens",
    writes_elsewhere: bool | None = None,
    reads_elsewhere: bool = False,
) -> ActiveLens:
    """Return a block in which all statements of the session see tables as the lens says.

        with headwater.lens.lens(spark, pins={"lake.ods.orders": 8}, redirects={"lake.dws": "scratch.dws"}):
            spark.table("lake.ods.orders")                      # snapshot 8
            spark.sql("INSERT INTO lake.dws.daily SELECT …")    # writes scratch.dws.daily

    It counts for the session, in whichever thread. One that redirects writes also closes the ways around SQL, such as
    RDDs that are saved, to the thread that opens it. What it doesn't say anything of is refused, by an error that names
    the table. A LensError if the session can't have a lens.
    """
    asked = Lens(
        name=name,
        pins=dict(pins or {}),
        generations=dict(generations or {}),
        redirects=dict(redirects or {}),
        allowed=allowed,
        writes_elsewhere=writes_elsewhere,
        reads_elsewhere=reads_elsewhere,
    )
    return ActiveLens(spark, asked)


class ActiveLens:
    """Made by `lens`; a block that can be entered once at a time."""

    def __init__(self, spark: SparkSession, asked: Lens) -> None:
        self.lens = asked
        self._session_state = _session_state(spark)
        inside: Any = spark
        self._context = inside.sparkContext._jsc.sc()
        self._classes = LensClasses(inside.sparkContext._gateway)
        self._namespaces = Namespaces.from_conf(dict(inside.sparkContext.getConf().getAll()))
        if inside.conf.get(_OTHER_ANALYZER, "false") == "true":
            raise LensError(f"{_OTHER_ANALYZER} is on, and the lens isn't in that way of analysing: set it to false")
        self._hooks: Any = None
        self._state: Any = None
        self._calls: JavaCallGuard | None = None

    def __enter__(self) -> ActiveLens:  # noqa: PYI034 - Self isn't in Python 3.10
        self.begin()
        if not self.lens.allows_writes_elsewhere:
            refusals = Refusals(self.lens.name, self.lens.allowed)
            self._calls = JavaCallGuard(refusals, thread=threading.get_ident())
            self._calls.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Literal[False]:
        if self._calls is not None:
            self._calls.end()
        self.end()
        return False

    def begin(self) -> None:
        """Have the session see through the lens from now on."""
        with _lock:
            if self._hooks is not None:
                raise LensError(f"the lens {self.lens.name!r} is open already: open another one")
            if self._rule_of_lens() is not None:
                raise LensError(f"this session has a lens already: end it before {self.lens.name!r} begins")
            asked = self._specification()  # refused before anything is put into the session
            state = self._classes.new("LensState", self._context)
            hooks = self._classes.install(self._session_state, state)
            state.getClass().getField("current").set(state, asked)
            self._hooks, self._state = hooks, state

    def uses(self) -> tuple[TargetUse, ...]:
        """Return what statements did with the tables that the lens redirects to: each effect once, in their order."""
        with _lock:
            lines = [] if self._state is None else str(self._state.uses()).splitlines()
        pairs = [line.partition(" ") for line in lines]
        return tuple(TargetUse(table, TargetEffect(effect)) for effect, _, table in pairs)

    def refusals(self) -> tuple[str, ...]:
        """Return what was refused: each message once. Whoever ran the statement may have gone on without it."""
        with _lock:
            return () if self._state is None else tuple(str(self._state.refusals()).splitlines())

    def close(self) -> None:
        """Have the session run nothing any more. The lens stays in it."""
        with _lock:
            if self._state is not None:
                self._state.getClass().getField("isClosed").set(self._state, True)

    def is_in(self, spark: SparkSession) -> bool:
        """Return whether this lens is in a session: in its own, or in a clone of that, as a stream runs in one."""
        rule = ActiveLens(spark, self.lens)._rule_of_lens()
        return self._state is not None and rule is not None and bool(rule.isOf(self._state))

    def end(self) -> None:
        """Leave the session as it was. Streams that were started under the lens see tables as they are, too."""
        with _lock:
            hooks, state, self._hooks, self._state = self._hooks, self._state, None, None
        if hooks is not None:
            state.getClass().getField("current").set(state, None)
            hooks.uninstall()

    def _rule_of_lens(self) -> Any:
        rule = self._session_state.analyzer().ResolveRelations()
        return rule if str(rule.getClass().getName()) == _RULE else None

    def _specification(self) -> Any:
        asked = self.lens
        made = self._classes.new("LensSpec", asked.name, asked.allows_writes_elsewhere, asked.reads_elsewhere)
        clusters = made.getClass().getField("clusters").get(made)
        clusters.driverHost(driver_host())
        for expression, logical in self._namespaces.expressions():
            clusters.name(expression, logical)
        for table, version in asked.pins.items():
            text = normal_version(table, version) if is_topic(table) else str(version)
            made.pin(self._full_name(table), text)
        for table, generation in asked.generations.items():
            made.generation(self._full_name(table), generation)
        for source, target in asked.redirects.items():
            made.redirect(self._full_name(source), self._full_name(target))
        for pattern in asked.allowed:
            made.allow(pattern if "*" in pattern else self._full_name(pattern))
        return made

    def _full_name(self, name: str) -> str:
        if is_topic(name):
            return normal_name(name, self._namespaces)
        if ":" in name and _PATH not in name:
            return name  # of something that has no name in SQL, such as stream:kafka
        names = self._classes.load("TableNames")
        parts = self._session_state.sqlParser().parseMultipartIdentifier(
            f"`{name}`" if _PATH in name and "`" not in name else name
        )
        qualify = next(method for method in names.getMethods() if method.getName() == "qualify")
        return str(qualify.invoke(None, self._classes.objects(parts, self._session_state)))


def _session_state(spark: SparkSession) -> Any:
    try:
        inside: Any = spark
        return inside._jsparkSession.sessionState()
    except Exception as e:  # what a Spark Connect session raises is pyspark's own
        raise LensError(
            f"a {type(spark).__module__}.{type(spark).__qualname__} has no driver in this process: a lens is opened "
            "where the driver is"
        ) from e
