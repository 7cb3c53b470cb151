"""Metrics over HTTP and in a file: as Prometheus and node_exporter get them, and never in the way of the bus."""

from __future__ import annotations

import builtins
import http.client
import os
import re
import socket
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headwater.errors import ConfigurationError
from headwater.listeners.bus import Bus
from headwater.listeners.metrics import exporter
from headwater.plugins import extra_command
from headwater.spi.factories import check_name
from headwater.testing.examples import DRAFTS
from tests.kit.bus.scripts import Taking, bus_of, emit_all
from tests.kit.waiting import PATIENCE, until

SERVED = {"metrics.port": "0"}
TAKING = {"taking": lambda _: Taking()}


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - it is our own
        assert answer.headers["Content-Type"].startswith("text/plain")
        return str(answer.read().decode())


def value(text: str, name: str) -> float:
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return sum(sample.value for sample in samples if sample.name == name)


def url_of(bus: Bus) -> str:
    until(lambda: bus.metrics_url is not None, "serving")
    return str(bus.metrics_url)


def address(url: str) -> tuple[str, int]:
    found = re.fullmatch(r"http://(127\.0\.0\.1):(\d+)/metrics", url)
    assert found
    return found[1], int(found[2])


def test_a_real_scrape_tells_how_it_is_now_until_the_bus_ends(tmp_path: Path) -> None:
    with bus_of(tmp_path, TAKING, SERVED) as bus:
        url = url_of(bus)
        assert value(get(url), "headwater_events_emitted_total") == 0
        emitted = emit_all(bus, DRAFTS)
        assert bus.flush(60)
        text = get(url)
        assert value(text, "headwater_events_emitted_total") == len(emitted)
        assert 'headwater_info{application="application_1",name="orders",version="' in text
        assert bus.stop(60)
        assert bus.metrics_url is None
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address(url), timeout=PATIENCE)
    until(lambda: not [each for each in threading.enumerate() if each.name.startswith("headwater-metrics")])


def test_one_who_scrapes_and_does_not_read_holds_nobody_up(tmp_path: Path) -> None:
    with bus_of(tmp_path, TAKING, SERVED) as bus:
        url = url_of(bus)
        hung = [socket.create_connection(address(url), timeout=PATIENCE) for _ in range(5)]
        hung[0].sendall(b"GET /metr")
        hung[1].sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert emit_all(bus, DRAFTS)
        assert bus.flush(60)
        assert "headwater_events_emitted_total" in get(url)
        began = time.monotonic()
        assert bus.stop(3 * PATIENCE)
        assert time.monotonic() - began < PATIENCE
        for each in hung:
            each.close()


def test_a_taken_port_is_reported_and_no_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with bus_of(tmp_path, TAKING, {"metrics.port": str(port)}) as bus:
            until(lambda: "spark.headwater.metrics.port" in caplog.text)
            assert emit_all(bus, DRAFTS)
            assert bus.stop(60)
    assert f"{port} on 127.0.0.1 can't be served" in caplog.text
    assert "0 for any that is free" in caplog.text


def test_the_file_is_whole_at_any_time_and_has_the_end(tmp_path: Path) -> None:
    path = tmp_path / "new" / "headwater.prom"
    with bus_of(tmp_path / "spools", TAKING, {"metrics.file": str(path)}) as bus:
        until(path.exists)
        assert value(path.read_text(), "headwater_listener_lag_events") == 0
        emitted = emit_all(bus, DRAFTS)
        assert bus.stop(60)
    text = path.read_text()
    assert value(text, "headwater_events_emitted_total") == len(emitted)
    assert value(text, "headwater_listener_acknowledged_events_total") == len(emitted)
    assert 'headwater_events_spooled_total{application="application_1"}' in text
    assert list(path.parent.iterdir()) == [path]


def test_a_directory_gets_a_file_for_the_application(tmp_path: Path) -> None:
    (tmp_path / "textfile").mkdir()
    with bus_of(tmp_path / "spools", TAKING, {"metrics.file": str(tmp_path / "textfile")}) as bus:
        emit_all(bus, DRAFTS)
    assert [each.name for each in (tmp_path / "textfile").iterdir()] == ["headwater-application_1.prom"]


def test_a_file_that_cannot_be_written_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("a file where a directory is wanted")
    keys = {"metrics.file": str(tmp_path / "file" / "x.prom"), "metrics.file.interval": "1 s"}
    with bus_of(tmp_path / "spools", TAKING, keys) as bus:
        until(lambda: "metrics.file" in caplog.text)
        assert emit_all(bus, DRAFTS)
        assert bus.stop(60)
    assert caplog.text.count("spark.headwater.metrics.file:") == 1


def test_without_the_library_it_says_what_to_install(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **more: Any) -> Any:
        if name.startswith(("prometheus_client", "headwater.listeners.metrics.server")):
            raise ModuleNotFoundError(f"No module named {name!r}")
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with bus_of(tmp_path, TAKING, {**SERVED, "metrics.file": str(tmp_path / "x.prom")}) as bus:
        until(lambda: extra_command("metrics") in caplog.text)
        emitted = emit_all(bus, DRAFTS)
        assert emitted
        assert bus.stop(60)
    assert "the job goes on without" in caplog.text


def test_no_thread_is_there_where_nobody_asks(tmp_path: Path) -> None:
    with bus_of(tmp_path, TAKING) as bus:
        emit_all(bus, DRAFTS)
        assert bus.metrics_url is None
        assert not [each for each in threading.enumerate() if each.name.startswith("headwater-metrics")]


def test_a_forked_child_does_not_keep_the_port(tmp_path: Path) -> None:
    ready, go_on = os.pipe(), os.pipe()
    with bus_of(tmp_path, TAKING, SERVED) as bus:
        url = url_of(bus)
        child = os.fork()
        if child == 0:  # nothing of pytest's may run here
            os.write(ready[1], b"1" if bus.metrics_url is None else b"0")
            os.read(go_on[0], 1)
            os._exit(0)
        try:
            assert os.read(ready[0], 1) == b"1"
            assert "headwater_info" in get(url)
            assert bus.stop(60)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(address(url), timeout=PATIENCE)
        finally:
            os.write(go_on[1], b"1")
            os.waitpid(child, 0)
            for end in (*ready, *go_on):
                os.close(end)


@pytest.mark.slow
def test_a_hung_file_system_does_not_hold_up_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_go_on = threading.Event()
    monkeypatch.setattr(exporter.MetricsExporter, "_write", lambda *_: may_go_on.wait(3 * PATIENCE))
    with bus_of(tmp_path, TAKING, {"metrics.file": str(tmp_path / "x.prom")}) as bus:
        emit_all(bus, DRAFTS)
        began = time.monotonic()
        assert bus.stop(2)
        assert time.monotonic() - began < PATIENCE
        may_go_on.set()


def test_other_methods_and_paths_harm_nobody(tmp_path: Path) -> None:
    with bus_of(tmp_path, TAKING, SERVED) as bus:
        connection = http.client.HTTPConnection(*address(url_of(bus)), timeout=60)
        connection.request("POST", "/metrics", body="x")
        assert connection.getresponse().status == 405
        connection.close()


def test_no_listener_can_be_called_metrics() -> None:
    with pytest.raises(ConfigurationError, match=r"spark\.headwater\.metrics is a section"):
        check_name("metrics")
