"""Makes a whole listener of what a factory created: defaults for what it lacks, and errors for what can't be called."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

from headwater.errors import PluginError
from headwater.events.envelope import Event
from headwater.plugins import check_methods
from headwater.spi.listeners import DurableListener, Listener
from headwater.spi.records import RecordBatch, SpoolPosition

_LOG = logging.getLogger(__name__)

_PLAIN: Final = {"on_event": "event", "on_missed": "count", "flush": "timeout", "close": "timeout"}
_DURABLE: Final = {"handle": "batch", "flush": "timeout", "close": "timeout"}


def adapt_listener(created: object) -> Listener | DurableListener:
    """Return what a factory created, with the defaults for what it lacks.

    An object with `handle` is durable, one with `on_event` is plain. A PluginError says why it is no listener, or which
    of its methods can't be called as the bus calls it.
    """
    if isinstance(created, type):
        raise PluginError(f"create returned the class {created.__name__}: return an object of it, {created.__name__}()")
    if _has(created, "handle"):
        check_methods(created, _DURABLE)
        if _overrides_flush(created):
            return created if isinstance(created, DurableListener) else _CompletedDurableListener(created)
        return _FlushlessDurableListener(created)
    if _has(created, "on_event"):
        check_methods(created, _PLAIN)
        return created if isinstance(created, Listener) else _CompletedListener(created)
    raise PluginError(
        f"create returned {_describe(created)}, which is no listener: it has neither on_event nor handle; "
        "derive its class from headwater.spi.Listener or headwater.spi.DurableListener"
    )


def _has(created: object, name: str) -> bool:
    return callable(getattr(created, name, None))


def _overrides_flush(created: object) -> bool:
    return _has(created, "flush") and getattr(type(created), "flush", None) is not DurableListener.flush


def _describe(created: object) -> str:
    return "None" if created is None else f"an object of {type(created).__name__}"


class _CompletedListener(Listener):
    """An object that has some of a plain listener's methods, with the defaults for the others."""

    def __init__(self, created: object) -> None:
        _take_methods(self, created, _PLAIN)

    def on_event(self, event: Event) -> None:
        raise NotImplementedError


class _CompletedDurableListener(DurableListener):
    """The same for a durable one."""

    def __init__(self, created: object) -> None:
        _take_methods(self, created, _DURABLE)

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        raise NotImplementedError


class _FlushlessDurableListener(DurableListener):
    """A durable listener without a `flush` of its own: that repeats the last answer of `handle`."""

    def __init__(self, created: Any) -> None:
        self._handle: Callable[[RecordBatch], SpoolPosition | None] = created.handle
        self._name = type(created).__name__
        self._answer: SpoolPosition | None = None
        self._is_warned = False
        _take_methods(self, created, ("close",))

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        self._answer = self._handle(batch)
        if self._answer is None and not self._is_warned:
            self._is_warned = True
            _LOG.warning(
                "%s.handle returned None and has no flush beside it, so its events count as undelivered: "
                "return batch.end once all of them are dealt with",
                self._name,
            )
        return self._answer

    def flush(self, timeout: float) -> SpoolPosition | None:  # noqa: ARG002 - for overriding
        return self._answer


def _take_methods(adapter: object, created: object, names: Iterable[str]) -> None:
    for name in names:
        if _has(created, name):
            setattr(adapter, name, getattr(created, name))
