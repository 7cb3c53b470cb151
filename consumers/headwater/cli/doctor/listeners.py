"""Each listener: whether its factory is found and can make it, and what that finds out about its target itself."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from typing import Final
from uuid import uuid4

from headwater.errors import HeadwaterError, PluginError, TransientError
from headwater.events.clock import ProducerClock
from headwater.listeners.bus.listener_creation import (
    DaemonExecutor,
    DriverListenerContext,
    Isolation,
    ListenerSpec,
    configured_isolation,
    configured_listeners,
    own_configuration,
)
from headwater.listeners.bus.shipper.start import check_start
from headwater.listeners.settings import PREFIX, Settings
from headwater.listeners.threads import DaemonThread
from headwater.spi import (
    WRONG_KEY,
    Application,
    CheckResult,
    Diagnosable,
    DurableListener,
    ListenerContext,
    ListenerFactory,
)
from headwater.spi.adapters import adapt_listener
from headwater.spi.factories import listener_factories

FACTORY: Final = "factory"
"""The step that says whether the configuration of a listener is right."""
PROCESS: Final = "process"
_PATIENCE: Final = 60.0
"""A step that takes longer isn't waited for."""
_CLOSE_SECONDS: Final = 5.0


def listeners_of(settings: Settings) -> list[ListenerSpec]:
    return configured_listeners(settings)[0]


def check_listener(wanted: ListenerSpec, conf: Mapping[str, str], patience: float = _PATIENCE) -> Iterator[CheckResult]:
    """Yield what is found. The listener works on a thread of its own: one that hangs is reported and left behind."""
    findings: queue.SimpleQueue[CheckResult | None] = queue.SimpleQueue()

    def run() -> None:
        try:
            for finding in _findings(wanted, conf):
                findings.put(finding)
        except HeadwaterError as e:
            findings.put(CheckResult.error("examination", str(e)))
        except BaseException as e:  # noqa: BLE001 - a plug-in can fail in any way
            findings.put(CheckResult.error("examination", f"it failed: {type(e).__name__}: {e}"))
        findings.put(None)

    DaemonThread(f"headwater-doctor-{wanted.name}", run).start()
    while True:
        try:
            found = findings.get(timeout=patience)
        except queue.Empty:
            yield CheckResult.error("examination", f"nothing came for {patience:g} s: the rest isn't waited for")
            return
        if found is None:
            return
        yield found


def _findings(wanted: ListenerSpec, conf: Mapping[str, str]) -> Iterator[CheckResult]:
    factories = listener_factories(wanted.item, key=wanted.key)
    for fault in factories.faults:
        yield CheckResult.error(FACTORY, str(fault), f"put {wanted.key} right, or install what brings it")
    if factories.found and configured_isolation(wanted.item, conf) is Isolation.PROCESS:
        yield _check_process(wanted.name)
    for named in factories.found:
        with DaemonExecutor(f"doctor-{wanted.name}") as executor:
            wrong_keys: list[str] = []
            yield from _check_with(wanted, named.factory, _context(wanted, conf, executor, wrong_keys), wrong_keys)


def _check_process(name: str) -> CheckResult:
    """Whether the shipper, in which the listener works, can be started."""
    try:
        check_start(_PATIENCE)
    except TransientError as e:
        advice = f"see to this Python and its path for imports, or set {PREFIX}{name}.isolation=thread"
        return CheckResult.error(PROCESS, str(e), advice)
    return CheckResult.ok(PROCESS, "it works in a process of its own")


def _context(
    wanted: ListenerSpec, conf: Mapping[str, str], executor: Executor, wrong_keys: list[str]
) -> DriverListenerContext:
    """Whatever else is in a listener's way stands in its findings."""

    def note(cause: str, detail: str) -> None:
        if cause == WRONG_KEY:
            wrong_keys.append(detail)

    own = own_configuration(wanted.name, conf)
    application = Application(f"headwater-doctor-{uuid4()}", "headwater doctor")
    return DriverListenerContext(wanted.name, own, executor, application, ProducerClock(), note)


def _check_with(
    wanted: ListenerSpec, factory: ListenerFactory, context: ListenerContext, wrong_keys: Sequence[str]
) -> Iterator[CheckResult]:
    try:
        created = factory.create(context)
    except Exception as e:  # noqa: BLE001 - a plug-in can fail in any way
        words = str(e) if isinstance(e, HeadwaterError) else f"{type(e).__name__}: {e}"
        yield CheckResult.error(FACTORY, words, f"put the keys below {context.prefix} right")
        return
    try:
        listener = adapt_listener(created)
    except PluginError as e:
        yield CheckResult.error(FACTORY, f"{wanted.item}: {e}", "change the plug-in's code, or name another one")
        return
    listener.close(_CLOSE_SECONDS)
    if wrong_keys:
        advice = f"put the keys below {context.prefix} right"
        yield from (CheckResult.error(FACTORY, wrong_key, advice) for wrong_key in wrong_keys)
        return
    kind = "misses nothing" if isinstance(listener, DurableListener) else "misses events where it is too slow"
    yield CheckResult.ok(FACTORY, f"{wanted.item} is found and can be made; it {kind}")
    if isinstance(factory, Diagnosable):
        yield from factory.diagnose(context)
    else:
        yield CheckResult.warning("examination", "this listener can't be examined, so its target wasn't looked at")
