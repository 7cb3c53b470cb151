"""Making a listener, for the first time and after it was set aside: always on its own thread, the import too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field

from headwater.errors import ConfigurationError, PluginError
from headwater.events.envelope import EventFamily
from headwater.listeners.bus.executor import DaemonExecutor
from headwater.listeners.bus.isolation import own_configuration
from headwater.listeners.bus.listener_errors import ListenerErrors
from headwater.listeners.bus.spool_manifest import ALL_FAMILIES
from headwater.listeners.settings import PREFIX, Settings
from headwater.spi import Application, Clock, DurableListener, Listener, ListenerFactory
from headwater.spi.adapters import adapt_listener
from headwater.spi.factories import listener_factories, name_and_reference

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
