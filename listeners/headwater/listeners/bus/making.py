"""Making a listener, for the first time and after it was set aside: always on its own thread, the import too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field

from headwater.errors import ConfigurationError, PluginError
from headwater.events.envelope import Family
from headwater.listeners.bus.errors import Errors
from headwater.listeners.bus.executor import DaemonExecutor
from headwater.listeners.bus.passport import EVERYTHING
from headwater.listeners.settings import PREFIX, Settings
from headwater.spi import (
    Application,
    Clock,
    DurableListener,
    Listener,
    ListenerContext,
    ListenerFactory,
    listener_factories,
    name_and_reference,
)

_CATALOG = frozenset({Family.CATALOG, Family.ADMIN})
_JOB = frozenset({Family.JOB, Family.ADMIN})

OnTrouble = Callable[[str, str], None]
"""Takes the cause and the detail of what `ListenerContext.trouble` was told. Doesn't raise."""


@dataclass(frozen=True)
class Wanted:
    """A listener that the configuration asks for."""

    name: str
    item: str
    """As it stands in the configuration: a name, or name=package.module:Factory."""
    key: str
    families: frozenset[Family] = EVERYTHING


@dataclass(frozen=True)
class Context:
    """What a factory is given."""

    name: str
    configuration: Mapping[str, str] = field(repr=False)
    executor: Executor
    application: Application
    clock: Clock
    on_trouble: OnTrouble = field(repr=False)

    @property
    def prefix(self) -> str:
        return f"{PREFIX}{self.name}."

    def trouble(self, cause: str, detail: str) -> None:
        self.on_trouble(cause, detail)


class Maker:
    """Makes the instances of one listener, and has what goes wrong with any of them."""

    def __init__(
        self, wanted: Wanted, configuration: Mapping[str, str], application: Application, clock: Clock
    ) -> None:
        self.wanted = wanted
        self.errors = Errors(wanted.name)
        prefix = f"{PREFIX}{wanted.name}."
        self._own = {key[len(prefix) :]: value for key, value in configuration.items() if key.startswith(prefix)}
        self._application = application
        self._clock = clock
        self._factory: ListenerFactory | None = None

    def make(self) -> Made:
        """An instance. A ConfigurationError or PluginError if that makes no sense with this configuration."""
        executor = DaemonExecutor(self.wanted.name)
        name, application = self.wanted.name, self._application
        context: ListenerContext = Context(name, self._own, executor, application, self._clock, self.errors.told)
        try:
            listener = self._checked(self._found().create(context))
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            raise
        return Made(listener, executor)

    def _checked(self, made: object) -> Listener | DurableListener:
        if isinstance(made, (DurableListener, Listener)):
            return made
        raise PluginError(
            f"{self.wanted.key}: what the factory of {self.wanted.name} makes is no listener: it has neither "
            "handle, flush and close, nor on_event, on_missed, flush and close"
        )

    def _found(self) -> ListenerFactory:
        if self._factory is None:
            factories = listener_factories(self.wanted.item, key=self.wanted.key)
            for fault in factories.faults:
                raise fault
            self._factory = factories.found[0].factory
        return self._factory


@dataclass(frozen=True)
class Made:
    """An instance, and what goes with it."""

    listener: Listener | DurableListener
    executor: DaemonExecutor


def wanted_listeners(settings: Settings) -> tuple[list[Wanted], list[ConfigurationError]]:
    """The listeners that the settings ask for, by their names; nothing is loaded."""
    wanted: dict[str, Wanted] = {}
    faults: list[ConfigurationError] = []
    for key, items, families in (
        ("listeners", settings.listeners, EVERYTHING),
        ("catalog.listeners", settings.catalog_listeners, _CATALOG),
        ("job.listeners", settings.job_listeners, _JOB),
    ):
        for item in items:
            try:
                _add(wanted, Wanted(name_and_reference(item)[0], item, PREFIX + key, families))
            except ConfigurationError as e:  # noqa: PERF203 - a handful
                faults.append(ConfigurationError(f"{PREFIX}{key}: {e}"))
    return list(wanted.values()), faults


def _add(wanted: dict[str, Wanted], one: Wanted) -> None:
    if one.name in wanted:
        reference = name_and_reference(one.item)[1]
        raise ConfigurationError(f"two listeners are called {one.name}: give one another name, as in other={reference}")
    wanted[one.name] = one
