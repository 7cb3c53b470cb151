"""Making a listener, for the first time and after it was set aside: always on its own thread, the import too.

Where a durable listener works: on a thread of the driver, or in the shipper, a process of its own.

The executor that listeners are given: unlike the standard one its threads never keep a process from ending.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, ParamSpec, TypeVar

from headwater.errors import ConfigurationError, PluginError
from headwater.events.envelope import EventFamily
from headwater.listeners.bus.listener_errors import ListenerErrors
from headwater.listeners.bus.spool_manifest import ALL_FAMILIES
from headwater.listeners.settings import PREFIX, Settings
from headwater.spi import Application, Clock, DurableListener, Listener, ListenerFactory
from headwater.spi.adapters import adapt_listener
from headwater.spi.factories import listener_factories, name_and_reference

KEY: Final = "isolation"
"""Below a listener's prefix. The listener's own configuration doesn't have it."""
_NATIVE_CLIENTS: Final = frozenset({"kafka", "jdbc"})
"""Listeners of ours whose clients are native code: what crashes there would take the driver along."""


class Isolation(str, Enum):
    """Where a listener works."""

    THREAD = "thread"
    """In the driver, on a thread of its own."""
    PROCESS = "process"
    """In the shipper. What it dies of harms no driver; it has to be durable."""


def configured_isolation(item: str, configuration: Mapping[str, str]) -> Isolation:
    """What the configuration says for a listener, or the default of its kind. A ConfigurationError for another word."""
    name, reference = name_and_reference(item)
    key = f"{PREFIX}{name}.{KEY}"
    word = configuration.get(key, "").strip().lower()
    if not word:
        return Isolation.PROCESS if reference in _NATIVE_CLIENTS else Isolation.THREAD
    try:
        return Isolation(word)
    except ValueError:
        raise ConfigurationError(f"{key}: {word!r} is neither process nor thread") from None


def own_configuration(name: str, configuration: Mapping[str, str]) -> dict[str, str]:
    """What stands below a listener's prefix, without it."""
    prefix = f"{PREFIX}{name}."
    own = {key[len(prefix) :]: value for key, value in configuration.items() if key.startswith(prefix)}
    own.pop(KEY, None)
    return own


P = ParamSpec("P")
T = TypeVar("T")


class DaemonExecutor(Executor):
    """Runs what is submitted on up to `workers` daemon threads, each started when it is needed."""

    def __init__(self, name: str, workers: int = 4) -> None:
        self._name = name
        self._workers = workers
        self._changed = threading.Condition()
        self._work: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._is_shut_down = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        with self._changed:
            if self._is_shut_down:
                raise RuntimeError(f"the executor of {self._name} is shut down: its listener is closed")
            self._work.append((future, lambda: fn(*args, **kwargs)))
            if self._idle < len(self._work) and len(self._threads) < self._workers:
                self._start()
            self._changed.notify()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take nothing more; with `wait`, come back when all that was taken is done."""
        with self._changed:
            self._is_shut_down = True
            waiting = list(self._work) if cancel_futures else []
            if cancel_futures:
                self._work.clear()
            self._changed.notify_all()
        for future, _ in waiting:
            future.cancel()
        for thread in self._threads if wait else ():
            thread.join()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name=f"headwater-{self._name}-io", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            future, work = taken
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = work()
            except BaseException as e:  # noqa: BLE001 - whoever waits for the result gets the error
                future.set_exception(e)
            else:
                future.set_result(result)

    def _take(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        with self._changed:
            self._idle += 1
            while not self._work and not self._is_shut_down:
                self._changed.wait()
            self._idle -= 1
            return self._work.popleft() if self._work else None


_CATALOG_FAMILIES = frozenset({EventFamily.CATALOG, EventFamily.ADMIN})
_JOB_FAMILIES = frozenset({EventFamily.JOB, EventFamily.ADMIN})

ReportProblem = Callable[[str, str], None]
"""Takes the cause and the detail of a call of `ListenerContext.report_problem`. Doesn't raise."""


@dataclass(frozen=True)
class ListenerSpec:
    """A listener that the configuration asks for."""

    name: str
    item: str
    """As it stands in the configuration: a name, or name=package.module:Factory."""
    key: str
    families: frozenset[EventFamily] = ALL_FAMILIES


@dataclass(frozen=True)
class DriverListenerContext:
    """What a factory is given."""

    name: str
    configuration: Mapping[str, str] = field(repr=False)
    executor: Executor
    application: Application
    clock: Clock
    on_problem: ReportProblem = field(repr=False)

    @property
    def prefix(self) -> str:
        return f"{PREFIX}{self.name}."

    def report_problem(self, cause: str, detail: str) -> None:
        self.on_problem(cause, detail)


class ListenerFactoryRunner:
    """Makes the instances of one listener, and has what goes wrong with any of them."""

    def __init__(
        self, wanted: ListenerSpec, configuration: Mapping[str, str], application: Application, clock: Clock
    ) -> None:
        self.spec = wanted
        self.errors = ListenerErrors(wanted.name)
        self._own = own_configuration(wanted.name, configuration)
        self._application = application
        self._clock = clock
        self._factory: ListenerFactory | None = None

    def make(self) -> ListenerInstance:
        """An instance. A ConfigurationError or PluginError if that makes no sense with this configuration."""
        executor = DaemonExecutor(self.spec.name)
        name, application = self.spec.name, self._application
        context = DriverListenerContext(name, self._own, executor, application, self._clock, self.errors.report_problem)
        try:
            listener = self._check(self._load_factory().create(context))
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            raise
        return ListenerInstance(listener, executor)

    def _check(self, made: object) -> Listener | DurableListener:
        try:
            return adapt_listener(made)
        except PluginError as e:
            raise PluginError(f"{self.spec.key}: the factory of {self.spec.name}: {e}") from None

    def _load_factory(self) -> ListenerFactory:
        if self._factory is None:
            factories = listener_factories(self.spec.item, key=self.spec.key)
            for fault in factories.faults:
                raise fault
            self._factory = factories.found[0].factory
        return self._factory


@dataclass(frozen=True)
class ListenerInstance:
    """An instance, and what goes with it."""

    listener: Listener | DurableListener
    executor: DaemonExecutor


def configured_listeners(settings: Settings) -> tuple[list[ListenerSpec], list[ConfigurationError]]:
    """The listeners that the settings ask for, by their names; nothing is loaded."""
    wanted: dict[str, ListenerSpec] = {}
    faults: list[ConfigurationError] = []
    for key, items, families in (
        ("listeners", settings.listeners, ALL_FAMILIES),
        ("catalog.listeners", settings.catalog_listeners, _CATALOG_FAMILIES),
        ("job.listeners", settings.job_listeners, _JOB_FAMILIES),
    ):
        for item in items:
            try:
                _add_spec(wanted, ListenerSpec(name_and_reference(item)[0], item, PREFIX + key, families))
            except ConfigurationError as e:  # noqa: PERF203 - a handful
                faults.append(ConfigurationError(f"{PREFIX}{key}: {e}"))
    return list(wanted.values()), faults


def _add_spec(wanted: dict[str, ListenerSpec], one: ListenerSpec) -> None:
    if one.name in wanted:
        reference = name_and_reference(one.item)[1]
        raise ConfigurationError(f"two listeners are called {one.name}: give one another name, as in other={reference}")
    wanted[one.name] = one
