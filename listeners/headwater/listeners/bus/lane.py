"""A listener's thread: it is made there, served there, set aside and made anew there."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from headwater.errors import ConfigurationError, PluginError, TerminalError
from headwater.listeners.bus.calls import Ending, GivenUpError, Stop
from headwater.listeners.bus.errors import words_of
from headwater.listeners.bus.handing import Handing
from headwater.listeners.bus.making import Made, Maker
from headwater.listeners.bus.options import BusOptions
from headwater.listeners.bus.pauses import Pauses
from headwater.listeners.bus.report import ListenerReport, Meter, Progress, State
from headwater.listeners.bus.telling import Telling
from headwater.listeners.threads import Daemon
from headwater.spi import DurableListener, Listener

_LOG = logging.getLogger(__name__)
Change = Callable[["Lane"], None]


class Lane:
    """One listener. Until it is made for the first time nobody knows whether it is durable: it has both ways then.

    `handing` is what it reads of the spool, if there is one; `telling` its queue, if it may be plain. `on_known` is
    called on its thread once it is known what it is, or that it can't be made.
    """

    def __init__(
        self,
        maker: Maker,
        options: BusOptions,
        *,
        meter: Meter,
        stop: Stop,
        progress: Progress,
        handing: Handing | None,
        telling: Telling | None,
        on_known: Change,
    ) -> None:
        self.name = maker.wanted.name
        self.families = maker.wanted.families
        self.maker = maker
        self.durable: bool | None = None
        self.fault: ConfigurationError | PluginError | None = None
        self.handing = handing
        self.telling = telling
        self._options = options
        self._meter = meter
        self._stop = stop
        self._progress = progress
        self._on_known = on_known
        self._state = State.STARTING
        self._thread = Daemon(f"headwater-{self.name}", self._run)

    def start(self) -> None:
        self._thread.start()

    @property
    def state(self) -> State:
        handing = self.handing
        is_tried = handing is not None and handing.is_pausing
        is_held_up = self._meter.errors.is_present and self.lag > 0
        return State.PAUSING if self._state is State.RUNNING and (is_tried or is_held_up) else self._state

    @property
    def is_known(self) -> bool:
        """Whether it is durable, plain, or can't be made."""
        return self.durable is not None or self.fault is not None

    @property
    def lag(self) -> int:
        """Events that aren't dealt with."""
        handing, telling = self.handing, self.telling
        if self.durable is not False and handing is not None:
            return handing.lag
        return 0 if telling is None else telling.lag

    @property
    def acknowledged(self) -> int:
        return self._meter.acknowledged_after.so_far.count

    @property
    def lag_seconds(self) -> float:
        """How old the oldest of those is."""
        handing, telling = self.handing, self.telling
        if self.durable is not False and handing is not None:
            return handing.lag_seconds
        return 0.0 if telling is None else telling.lag_seconds

    @property
    def missed(self) -> int:
        """Events that it was not told, and never will be."""
        telling = self.telling
        is_plain = self.durable is False or self.handing is None
        return telling.missed if telling is not None and is_plain else 0

    def begin_stop(self, deadline: float) -> None:
        self._stop.begin(deadline)

    def join(self) -> bool:
        """Wait for the thread as long as it has time; where it hasn't come back by then it is given up."""
        if self._thread.join(self._stop.left):
            return True
        self._stop.give_up()
        self._state = State.GIVEN_UP
        _LOG.warning("listener %s hasn't come back from a call: it is given up", self.name)
        return False

    def leave_spool(self) -> None:
        """Let others read on with the cursor, also where this thread never comes back."""
        if (handing := self.handing) is not None:
            handing.end()

    def report(self) -> ListenerReport:
        meter = self._meter
        return ListenerReport(
            name=self.name,
            durable=self.durable,
            state=self.state,
            handed=meter.handed,
            acknowledged=self.acknowledged,
            lag=self.lag,
            lag_seconds=self.lag_seconds,
            missed=self.missed,
            lost=0,
            handed_after=meter.handed_after.so_far,
            acknowledged_after=meter.acknowledged_after.so_far,
            failures=meter.failures,
            errors=meter.errors.counts,
            calls=meter.calls,
            seconds=meter.seconds,
            longest_call=meter.longest,
            last_error=meter.errors.last,
        )

    def _run(self) -> None:
        try:
            self._options.enter()
        except Exception as e:  # noqa: BLE001 - the listener can do without
            _LOG.debug("the thread of listener %s: %s", self.name, words_of(e))
        try:
            self._serve_all()
            self._state = State.FAILED if self._state is State.FAILED else State.CLOSED
        except GivenUpError:
            self._state = State.GIVEN_UP
        except Exception as e:  # noqa: BLE001 - logged; nothing else may be harmed by it
            self._state = State.FAILED
            self._meter.failed(e)
            _LOG.exception("the thread of listener %s ended", self.name)
        finally:
            self.leave_spool()
            self._progress.made()

    def _serve_all(self) -> None:
        made = self._made()
        while made is not None:
            self._state = State.RUNNING
            try:
                ending = self._serve(made.listener)
            finally:
                made.executor.shutdown(wait=False, cancel_futures=True)
            if ending is Ending.OVER:
                return
            made = self._made_anew()

    def _serve(self, listener: Listener | DurableListener) -> Ending:
        if self.durable:
            if self.handing is None or not isinstance(listener, DurableListener):
                return self._fail(PluginError(f"{self.name} is durable, and there is no spool to hand it anything of"))
            return self.handing.serve(listener)
        if self.telling is None or not isinstance(listener, Listener):
            return self._fail(PluginError(f"{self.name} isn't durable, and has nothing to do with a spool"))
        return self.telling.serve(listener)

    def _made(self) -> Made | None:
        """The first instance; None where there is none to be had, or the bus has stopped before."""
        pauses = Pauses(self._options.first_pause, self._options.aside)
        while self._stop.left_to_drain > 0:
            try:
                made = self._meter.timed(self.maker.make)
            except (ConfigurationError, PluginError) as e:  # noqa: PERF203 - once
                self._stop.check()
                self._fail(e)
                return None
            except BaseException as e:  # noqa: BLE001 - a plug-in can fail in any way
                self._could_not_make(e)
                if not isinstance(e, TerminalError):
                    self._stop.pause(pauses.next())
                elif not self._lies_aside():
                    return None
            else:
                self._stop.check()
                self._learn(durable=isinstance(made.listener, DurableListener))
                return made
        return None

    def _made_anew(self) -> Made | None:
        """The next instance, after a while; None where the bus has stopped before."""
        self._state = State.ASIDE
        self._progress.made()
        _LOG.warning(
            "listener %s is set aside for %g s, and then made anew: %s",
            self.name,
            self._options.aside,
            self._meter.errors.last,
        )
        while self._lies_aside():
            try:
                made = self._meter.timed(self.maker.make)
            except BaseException as e:  # noqa: BLE001, PERF203 - a plug-in can fail in any way
                self._could_not_make(e)
            else:
                self._stop.check()
                return made
        return None

    def _lies_aside(self) -> bool:
        """For its time; False once the bus stops, which is no time to begin anew."""
        if not self._stop.is_begun:
            self._stop.pause(self._options.aside)
        return not self._stop.is_begun

    def _could_not_make(self, error: BaseException) -> None:
        self._stop.check()
        if words_of(error) != self._meter.errors.last:
            _LOG.warning("listener %s can't be made now, and is tried again: %s", self.name, words_of(error))
        self._meter.failed(error)

    def _fail(self, error: ConfigurationError | PluginError) -> Ending:
        self.fault = error
        self._state = State.FAILED
        self._meter.failed(error)
        _LOG.warning("%s", error)
        if self.telling is not None:
            self.telling.close_ears()
        self._on_known(self)
        return Ending.OVER

    def _learn(self, *, durable: bool) -> None:
        self.durable = durable
        if durable and self.handing is not None:
            self.telling = None
        self._on_known(self)


def stop_all(lanes: list[Lane], deadline: float) -> bool:
    """Stop them all at once; whether all came back."""
    for lane in lanes:
        lane.begin_stop(deadline)
    came_back = [lane.join() for lane in lanes]
    return all(came_back)


def await_all(lanes: list[Lane], progress: Progress, timeout: float) -> bool:
    """Wait until every listener has dealt with what was told so far, as far as waiting makes sense."""
    began = time.monotonic()
    plain = {lane.name: telling.ask_to_flush(timeout) for lane in lanes if (telling := lane.telling) is not None}
    durable = {lane.name: handing.told for lane in lanes if (handing := lane.handing) is not None}

    def is_past(lane: Lane) -> bool:
        telling, handing = lane.telling, lane.handing
        if lane.durable:
            return handing is not None and handing.dealt >= durable.get(lane.name, 0)
        return lane.durable is False and telling is not None and telling.is_flushed(plain.get(lane.name, 0))

    def is_settled() -> bool:
        return all(lane.state.is_out or is_past(lane) for lane in lanes)

    progress.wait_for(is_settled, max(0.0, timeout - (time.monotonic() - began)))
    return all(is_past(lane) for lane in lanes)
