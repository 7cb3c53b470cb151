"""Alerts arrive at webhooks, at Slack and at commands: in order, over failures and restarts, none lost."""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import Generator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import TransientError
from headwater.events import Event
from headwater.events.changes import DropColumn
from headwater.forwarders.alerts import AlertForwarder
from headwater.forwarders.alerts import destinations as dispatching
from headwater.forwarders.api import BusEvent, ForwarderContext, PeriodicForwarder
from headwater.spi import CheckStatus
from tests.kit import seeds
from tests.kit.forwarders.alerts import NOON, altered, failed, lineage
from tests.kit.forwarders.stage import LONG, MemoryBus, Stage, until
from tests.kit.forwarders.webhook_server import WebhookAnswer, WebhookServer, webhook_server
from tests.kit.processes import is_alive
from tests.kit.waiting import attempts

pytestmark = pytest.mark.slow

RULE = '[[rules]]\nname = "failures"\nwhen = "job-failed"\nlimit = 1000\nto = [{}]\n'
NOW = NOON.timestamp() + 60


@pytest.fixture
def server() -> Generator[WebhookServer]:
    with webhook_server() as started:
        yield started


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_SHORTEST", "_LONGEST", "_SHORTEST_TERMINAL", "_LONGEST_TERMINAL"):
        monkeypatch.setattr(dispatching, name, 0.001)


def forwarder(folder: Path, destinations: str, *to: str, text: str = "") -> AlertForwarder:
    file = folder / "rules.toml"
    rule = RULE.format(", ".join(f'"{each}"' for each in to))
    file.write_text(f"{destinations}\n{rule}{text}", "utf-8")
    context = ForwarderContext("alerts", {"rules": str(file)}, directory=folder / "state")
    return AlertForwarder(context, clock=lambda: NOW)


def webhook(name: str, server: WebhookServer, kind: str = "webhook", more: str = "") -> str:
    return f'[destinations.{name}]\ntype = "{kind}"\nurl = "{server.url}"\n{more}\n'


def command(name: str, *words: str, timeout: str = "20 s") -> str:
    return f'[destinations.{name}]\ntype = "command"\ncommand = {json.dumps(words)}\ntimeout = "{timeout}"\n'


def batch(events: Sequence[Event]) -> list[BusEvent]:
    bus = MemoryBus()
    return [BusEvent(event, bus.append(event)._replace(append_time=None)) for event in events]


async def until_delivered(target: AlertForwarder) -> None:
    async def go() -> None:
        while target._store.waiting():
            await target.settle()
            await asyncio.sleep(0.002)

    await asyncio.wait_for(go(), LONG)


def deliver(target: AlertForwarder, events: Sequence[Event]) -> None:
    async def go() -> None:
        await target.handle(batch(events))
        await until_delivered(target)
        await target.close()

    asyncio.run(go())


def runs(alerts: Sequence[dict[str, Any]]) -> list[int]:
    return [int(each["values"]["run"].rpartition("-")[2], 16) for each in alerts]


def test_a_webhook_gets_each_alert_as_a_cloud_event(server: WebhookServer, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret that is long enough for it", "utf-8")
    secret = f'secret.file = "{tmp_path}/secret"'
    deliver(forwarder(tmp_path, webhook("w", server, more=secret), "w"), [failed(1), failed(2)])
    assert runs([each["data"] for each in server.accepted]) == [1, 2]
    first = server.accepted[0]
    assert (first["type"], first["source"], first["specversion"]) == (
        "headwater.alert.v1",
        "urn:headwater:alerts",
        "1.0",
    )
    assert first["id"] == first["data"]["id"]
    assert server.posts[0].headers["webhook-signature"].startswith("v1,")


def test_slack_gets_a_text_that_mentions_nobody(server: WebhookServer, tmp_path: Path) -> None:
    server.answers.append(WebhookAnswer(200, b"ok"))
    target = forwarder(tmp_path, webhook("s", server, "slack"), "s", text='text = "<!here> {job}"')
    deliver(target, [failed(1, job="<!channel> & co")])
    assert [json.loads(each.body) for each in server.requests] == [
        {"text": "*[warning] failures*\n<!here> &lt;!channel&gt; &amp; co"}
    ]


def test_a_server_that_fails_and_processes_that_restart_lose_no_alert(server: WebhookServer, tmp_path: Path) -> None:
    chance = random.Random(f"{seeds.seed()}alerts")
    server.chaos, server.fault_rate = chance, 0.4
    events = [failed(number) for number in range(1, 61)]

    async def process(part: Sequence[Event]) -> None:
        """One that ends before everything is delivered."""
        target = forwarder(tmp_path, webhook("w", server, more='request.timeout = "150 ms"'), "w")
        await target.handle(batch(part))
        await target.settle()
        await target.close()

    for start in range(0, 60, 10):
        asyncio.run(process(events[max(0, start - 5) : start + 10]))
    deliver(forwarder(tmp_path, webhook("w", server, more='request.timeout = "150 ms"'), "w"), [])
    assert server.faults
    assert runs([each["data"] for each in server.events()]) == list(range(1, 61))


def test_one_that_hangs_delays_no_other(server: WebhookServer, tmp_path: Path) -> None:
    with webhook_server() as other:
        other.answers += [WebhookAnswer(fault="hang")] * 3
        places = webhook("stuck", other, more='request.timeout = "60 s"') + webhook("w", server)

        async def go() -> None:
            target = forwarder(tmp_path, places, "stuck", "w")
            began = time.monotonic()
            await target.handle(batch([failed(1), failed(2)]))
            assert time.monotonic() - began < 50, "reading must not wait for it either"
            await until(lambda: len(server.accepted) == 2)
            other.released.set()
            other.answers.clear()
            await until_delivered(target)
            await target.close()

        asyncio.run(asyncio.wait_for(go(), LONG))
        assert runs([each["data"] for each in other.accepted]) == [1, 2]


def test_a_tick_says_what_alerts_wait_for(
    server: WebhookServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatching, "_SHORTEST", 1000.0)
    monkeypatch.setattr(dispatching, "_LONGEST", 1000.0)
    server.answers.append(WebhookAnswer(503, b"in maintenance"))
    target = forwarder(tmp_path, webhook("w", server), "w")
    assert isinstance(target, PeriodicForwarder)

    async def go() -> None:
        await target.handle(batch([failed(1)]))
        await target.settle()
        with pytest.raises(TransientError, match=r"alerts wait for w: .*in maintenance"):
            await target.tick(None)
        await target.close()

    asyncio.run(go())
    assert len(server.requests) == 1, "it waits before it tries again"


def test_what_is_refused_is_not_sent_again_and_is_seen(server: WebhookServer, tmp_path: Path) -> None:
    server.answers.append(WebhookAnswer(400, b"invalid_payload"))
    deliver(forwarder(tmp_path, webhook("w", server), "w"), [failed(1), failed(2)])
    assert runs([each["data"] for each in server.accepted]) == [2]
    target = forwarder(tmp_path, webhook("w", server), "w")

    async def go() -> list[tuple[str, CheckStatus, str]]:
        found = [(each.step, each.status, each.message) async for each in target.check()]
        await target.close()
        return found

    found = asyncio.run(go())
    assert [(step, status) for step, status, _ in found] == [
        ("rules", CheckStatus.OK),
        ("w: server", CheckStatus.OK),
        ("w: rights", CheckStatus.OK),
        ("w: refused", CheckStatus.WARNING),
    ]
    assert "invalid_payload" in found[-1][2]
    assert [each.method for each in server.requests] == ["POST", "POST", "OPTIONS"]


def test_an_answer_that_nobody_could_write_down_brings_the_alert_again(
    server: WebhookServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = forwarder(tmp_path, webhook("w", server), "w")

    async def dying() -> None:
        def settle(*_: object) -> None:
            raise TransientError("killed")

        monkeypatch.setattr(target._store, "settle_message", settle)
        await target.handle(batch([failed(1)]))
        await target.settle()
        await target.close()

    asyncio.run(dying())
    deliver(forwarder(tmp_path, webhook("w", server), "w"), [failed(1)])
    first, again = server.accepted
    assert first["id"] == again["id"]


WRITE = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + chr(10) + sys.argv[2] + chr(10))"


class TestCommands:
    def test_it_gets_the_alert_on_its_standard_input_and_no_shell(self, tmp_path: Path) -> None:
        file = tmp_path / "got"
        place = command("c", sys.executable, "-c", WRITE, str(file), "$(rm -rf /) ; `id` | x")
        deliver(forwarder(tmp_path, place, "c"), [failed(1), failed(2)])
        lines = file.read_text("utf-8").splitlines()
        assert runs([json.loads(each) for each in lines[::2]]) == [1, 2]
        assert lines[1::2] == ["$(rm -rf /) ; `id` | x"] * 2

    def test_one_that_fails_is_started_again(self, tmp_path: Path) -> None:
        file = tmp_path / "tries"
        program = "import sys, os; f = sys.argv[1]; open(f, 'a').write('x'); sys.exit(len(open(f).read()) < 3)"
        deliver(forwarder(tmp_path, command("c", sys.executable, "-c", program, str(file)), "c"), [failed(1)])
        assert file.read_text("utf-8") == "xxx"

    def test_one_that_does_not_end_is_killed_with_what_it_started(self, tmp_path: Path) -> None:
        file = tmp_path / "pids"
        program = 'sleep 300 & echo "$$ $!" > "$0"; wait'  # a shell, which is there at once also on a busy machine
        place = command("c", "/bin/sh", "-c", program, str(file), timeout="3 s")
        target = forwarder(tmp_path, place, "c")

        async def go() -> str | None:
            await target.handle(batch([failed(1)]))
            for _ in attempts("one that came so far, as not each does in its three seconds of a busy machine"):
                await target.settle()
                if file.exists() and file.read_text("utf-8"):
                    break
            error = target._dispatchers[0].error
            await target.close()
            return error

        assert "was killed" in str(asyncio.run(go()))
        parent, child = map(int, file.read_text("utf-8").split())
        assert not Path(f"/proc/{parent}").exists()
        for _ in attempts("the end of what it started"):
            if not is_alive(child):
                break

    def test_one_that_is_not_there(self, tmp_path: Path) -> None:
        target = forwarder(tmp_path, command("c", "/nowhere/page"), "c")

        async def go() -> tuple[str | None, list[CheckStatus]]:
            await target.handle(batch([failed(1)]))
            await target.settle()
            found = [each.status async for each in target.check()]
            await target.close()
            return target._dispatchers[0].error, found

        error, found = asyncio.run(go())
        assert "/nowhere/page can't be started: No such file" in str(error)
        assert found == [CheckStatus.OK, CheckStatus.ERROR]


def test_through_the_whole_machinery(server: WebhookServer, tmp_path: Path) -> None:
    """Events on a bus, with restarts from the beginning: offsets are lost, alerts aren't raised again."""
    stage = Stage(tmp_path)
    for number in range(1, 31):
        stage.bus.append(failed(number))
    stage.bus.partitions[0] = [each._replace(append_time=None) for each in stage.bus.partitions[0]]

    async def process() -> None:
        target = forwarder(tmp_path, webhook("w", server), "w")
        await asyncio.wait_for(stage.runner(target, batch="7").run(), LONG)
        await until_delivered(target)
        await target.close()

    for _ in range(3):
        asyncio.run(process())
        stage.bus.committed.clear()
    stage.state.close()
    assert runs([each["data"] for each in server.accepted]) == list(range(1, 31))


def test_a_clock_in_the_future_does_not_make_alerts_wait(tmp_path: Path) -> None:
    """The time at which the bus got the event counts, plus five minutes."""
    target = forwarder(tmp_path, command("c", "/bin/true"), "c")
    later = failed(1, datetime(2099, 1, 1, tzinfo=timezone.utc))
    record = MemoryBus().append(later)._replace(append_time=int(NOW * 1_000_000))
    deliver(target, [])
    target = forwarder(tmp_path, command("c", "/bin/true"), "c")

    async def go() -> list[str]:
        await target.handle([BusEvent(later, record)])
        bodies = [each.body for each in target._store.messages("c")]
        await target.close()
        return bodies

    (body,) = asyncio.run(go())
    assert json.loads(body)["time"] == "2026-03-01T12:06:00Z"


def test_a_preview_sends_nothing_and_knows_the_events_before(tmp_path: Path, server: WebhookServer) -> None:
    rule = '[[rules]]\nname = "columns"\nwhen = "column-changed"\nto = ["w"]\n'
    target = forwarder(tmp_path, webhook("w", server), "w", text=f"\n{rule}")
    shown = [
        text
        for event in (failed(1), lineage(2, "billing", "amount"), altered(3, DropColumn(path=("amount",))))
        for text in target.preview(event)
    ]
    assert shown == [
        "to w: [warning] failures: etl is FAILED: SparkException: Job aborted",
        "to w: [warning] columns: lake.sales.orders: amount was dropped, and billing reads that",
    ]
    asyncio.run(target.close())
    assert server.requests == []
