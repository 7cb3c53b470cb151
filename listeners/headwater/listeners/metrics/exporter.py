"""What the settings ask for, from the start of a bus to its end: metrics over HTTP, in a file, or not at all."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from headwater.events.clock import reset_after_fork
from headwater.listeners.settings import PREFIX, Settings
from headwater.listeners.threads import DaemonThread
from headwater.plugins import extra_command, own_version
from headwater.spi import Application

if TYPE_CHECKING:  # the library is an extra, and takes a while to import
    from prometheus_client.registry import CollectorRegistry

    from headwater.listeners.metrics.collector import ReportFunction
    from headwater.listeners.metrics.server import MetricsServer

_LOG = logging.getLogger(__name__)
_INSTALL_ADVICE: Final = f"prometheus-client isn't installed: {extra_command('metrics')}"
_CONSEQUENCE: Final = "the job goes on without"


class MetricsExporter:
    """Everything happens on a thread of its own, which nobody waits for longer than he says. Nothing is raised."""

    def __init__(self, settings: Settings, application: Application, report: ReportFunction) -> None:
        self.url: str | None = None
        """Where metrics are served, as soon as they are."""
        self._settings = settings
        self._application = application
        self._report = report
        self._stopping = threading.Event()
        self._last_fault = ""
        self._server: MetricsServer | None = None
        self._thread = DaemonThread("headwater-metrics", self._run)
        reset_after_fork(self)

    @property
    def is_enabled(self) -> bool:
        return self._settings.metrics_port is not None or self._settings.metrics_file is not None

    def start(self) -> None:
        if self.is_enabled:
            self._thread.start()

    def stop(self, timeout: float) -> bool:
        """Write the file for the last time, and serve nobody any more; whether that was done in that many seconds."""
        self._stopping.set()
        return self._thread.join(timeout)

    def begin_in_child(self) -> None:
        """The thread isn't there, and the port is the parent's."""
        server, self._server, self.url = self._server, None, None
        self._thread = DaemonThread("headwater-metrics", self._run)
        if server is not None:
            server.forget()

    def _run(self) -> None:
        try:
            self._serve()
            self._write_until_the_end()
        except ImportError as e:
            _LOG.warning("%smetrics: %s; %s (%s)", PREFIX, _INSTALL_ADVICE, _CONSEQUENCE, e)
        except Exception as e:  # noqa: BLE001 - nothing here may harm anybody
            _LOG.warning("%smetrics: there are none, and %s: %s: %s", PREFIX, _CONSEQUENCE, type(e).__name__, e)
        finally:
            if self._server is not None:
                self._server.close()
            self.url = None

    def _serve(self) -> None:
        host, port = self._settings.metrics_host, self._settings.metrics_port
        if port is None:
            return
        from headwater.listeners.metrics.server import MetricsServer  # noqa: PLC0415 - see above

        try:
            self._server = MetricsServer(self._registry(), host, port)
        except OSError as e:
            other = f"free it, give another, or 0 for any that is free; {_CONSEQUENCE}"
            _LOG.warning("%smetrics.port: %s on %s can't be served (%s): %s", PREFIX, port, host, e, other)
            return
        self.url = self._server.url
        _LOG.info("metrics are at %s", self.url)

    def _write_until_the_end(self) -> None:
        given = self._settings.metrics_file
        if given is None:
            self._stopping.wait()
            return
        path, registry = self._file(given), self._registry({"application": self._application.id})
        while not self._stopping.is_set():
            self._write(path, registry)
            self._stopping.wait(self._settings.metrics_file_interval)
        self._write(path, registry)

    def _write(self, path: Path, registry: CollectorRegistry) -> None:
        from prometheus_client import write_to_textfile  # noqa: PLC0415 - see above

        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_to_textfile(str(path), registry)
            self._last_fault = ""
        except OSError as e:
            if str(e.strerror) != self._last_fault:  # its text names a file that is another each time
                _LOG.warning("%smetrics.file: %s can't be written (%s): name another", PREFIX, path, e.strerror)
            self._last_fault = str(e.strerror)

    def _file(self, given: Path) -> Path:
        """A directory gets a file for each application: two drivers don't write over each other there."""
        path = given.expanduser().absolute()
        return path / f"headwater-{self._application.id}.prom" if path.is_dir() else path

    def _registry(self, labels: dict[str, str] | None = None) -> CollectorRegistry:
        from prometheus_client.registry import CollectorRegistry as Registry  # noqa: PLC0415 - see above

        from headwater.listeners.metrics.collector import BusCollector  # noqa: PLC0415 - see above

        registry = Registry(auto_describe=False)
        info = {"application": self._application.id, "name": self._application.name, "version": own_version() or ""}
        registry.register(BusCollector(self._report, info=info, labels=labels))
        return registry
