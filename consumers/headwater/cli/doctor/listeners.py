"""Each listener: whether its factory is found and can make it, and what that finds out about its target itself."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from typing import Final
from uuid import uuid4

from headwater.errors import HeadwaterError
from headwater.events.clock import ProducerClock
from headwater.listeners.bus.executor import DaemonExecutor
from headwater.listeners.bus.making import Context, Wanted, wanted_listeners
from headwater.listeners.settings import PREFIX, Settings
from headwater.listeners.threads import Daemon
from headwater.spi import (
    Application,
    DurableListener,
    Examinable,
    Finding,
    Listener,
    ListenerContext,
    ListenerFactory,
    listener_factories,
)

FACTORY: Final = "factory"
"""The step that says whether the configuration of a listener is right."""
_PATIENCE: Final = 60.0
"""A step that takes longer isn't waited for."""
_CLOSE_SECONDS: Final = 5.0


def wanted_of(settings: Settings) -> list[Wanted]:
    return wanted_listeners(settings)[0]


def look_at_listener(wanted: Wanted, conf: Mapping[str, str], patience: float = _PATIENCE) -> Iterator[Finding]:
    """Everything of the listener happens on a thread of its own: one that hangs is told, and left alone."""
    findings: queue.SimpleQueue[Finding | None] = queue.SimpleQueue()

    def run() -> None:
        try:
            for each in _findings(wanted, conf):
                findings.put(each)
        except HeadwaterError as e:
            findings.put(Finding.wrong("examination", str(e)))
        except BaseException as e:  # noqa: BLE001 - a plug-in can fail in any way
            findings.put(Finding.wrong("examination", f"it failed: {type(e).__name__}: {e}"))
        findings.put(None)

    Daemon(f"headwater-doctor-{wanted.name}", run).start()
    while True:
        try:
            found = findings.get(timeout=patience)
        except queue.Empty:
            yield Finding.wrong("examination", f"nothing came for {patience:g} s: the rest isn't waited for")
            return
        if found is None:
            return
        yield found


def _findings(wanted: Wanted, conf: Mapping[str, str]) -> Iterator[Finding]:
    factories = listener_factories(wanted.item, key=wanted.key)
    for fault in factories.faults:
        yield Finding.wrong(FACTORY, str(fault), f"put {wanted.key} right, or install what brings it")
    for named in factories.found:
        with DaemonExecutor(f"doctor-{wanted.name}") as executor:
            yield from _examined(wanted, named.factory, _context(wanted, conf, executor))


def _context(wanted: Wanted, conf: Mapping[str, str], executor: Executor) -> Context:
    prefix = f"{PREFIX}{wanted.name}."
    own = {key[len(prefix) :]: value for key, value in conf.items() if key.startswith(prefix)}
    application = Application(f"headwater-doctor-{uuid4()}", "headwater doctor")
    return Context(wanted.name, own, executor, application, ProducerClock(), _in_the_findings)


def _in_the_findings(_: str, __: str) -> None:
    """What matters of a listener's trouble stands there."""


def _checked(made: object) -> Listener | DurableListener | None:
    """Whatever a plug-in made; None where that is no listener."""
    return made if isinstance(made, (DurableListener, Listener)) else None


def _examined(wanted: Wanted, factory: ListenerFactory, context: ListenerContext) -> Iterator[Finding]:
    try:
        listener = _checked(factory.create(context))
    except Exception as e:  # noqa: BLE001 - a plug-in can fail in any way
        words = str(e) if isinstance(e, HeadwaterError) else f"{type(e).__name__}: {e}"
        yield Finding.wrong(FACTORY, words, f"put the keys below {context.prefix} right")
        return
    if listener is None:
        yield Finding.wrong(FACTORY, f"what {wanted.item} makes is no listener", "it needs handle or on_event")
        return
    listener.close(_CLOSE_SECONDS)
    kind = "misses nothing" if isinstance(listener, DurableListener) else "misses events where it is too slow"
    yield Finding.fine(FACTORY, f"{wanted.item} is found and can be made; it {kind}")
    if isinstance(factory, Examinable):
        yield from factory.examine(context)
    else:
        yield Finding.doubtful("examination", "this listener can't be examined, so its target wasn't looked at")
