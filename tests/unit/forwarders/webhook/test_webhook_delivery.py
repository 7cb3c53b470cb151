"""Events arrive as CloudEvents in the three modes, at servers that fail in all ways, in the order of their keys."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import socket
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import ConfigurationError, TerminalError, TransientError
from headwater.events import Event
from headwater.events.keys import key_of
from headwater.forwarders.api import RefusedEventsError
from headwater.forwarders.webhook.http_client import HttpEndpoint
from headwater.forwarders.webhook.options import WebhookOptions
from headwater.forwarders.webhook.permission import Permission
from headwater.spi import CheckStatus
from headwater.testing.examples import EXAMPLES
from tests.kit import seeds
from tests.kit.forwarders.sending import batch, sent
from tests.kit.forwarders.stage import LONG, Stage, cancelled_when, commit
from tests.kit.forwarders.webhook import checked, forwarder
from tests.kit.forwarders.webhook_server import WebhookAnswer, WebhookServer, webhook_server

pytestmark = pytest.mark.slow

MODES = ["structured", "binary", "batched"]
SOME = EXAMPLES[:6]


@pytest.fixture
def server() -> Generator[WebhookServer]:
    with webhook_server() as started:
        yield started


def ids(events: Sequence[Event]) -> list[str]:
    return [str(each.event_id) for each in events]


@pytest.mark.parametrize("mode", MODES)
def test_every_event_arrives_as_it_is(server: WebhookServer, mode: str) -> None:
    assert sent(forwarder(url=server.url, mode=mode, header_X_Tenant="acme"), EXAMPLES) == [None]
    by_id = {each["id"]: each for each in server.accepted}
    assert len(server.accepted) == len(EXAMPLES)
    for event in EXAMPLES:
        received = by_id[str(event.event_id)]
        assert Event.from_json(json.dumps(received["data"])) == event
        assert received["type"] == f"headwater.{event.kind}.v{event.schema_version}"
        assert received["partitionkey"] == key_of(event).decode()
        assert (received["specversion"], received["source"]) == ("1.0", "urn:headwater:events")
    assert {each.headers["x.tenant"] for each in server.posts} == {"acme"}
    assert len(server.posts) == (1 if mode == "batched" else len(EXAMPLES))


def test_one_connection_keeps_the_order_of_the_bus(server: WebhookServer) -> None:
    events = [commit(number, job=f"job{number % 3}") for number in range(1, 20)]
    assert sent(forwarder(url=server.url, connections="1"), events) == [None]
    assert [each["id"] for each in server.accepted] == ids(events)


def test_events_of_other_keys_do_not_wait_for_one_that_hangs(server: WebhookServer) -> None:
    server.answers.append(WebhookAnswer(fault="hang"))
    events = [commit(1, job="a"), commit(2, job="b"), commit(3, job="a"), commit(4, job="b")]
    (error,) = sent(forwarder(url=server.url, request_timeout="1 s"), events)
    assert isinstance(error, TransientError)
    arrived = [each["id"] for each in server.accepted]
    assert arrived in (ids([events[1], events[3]]), ids([events[0], events[2]])), "either of the jobs can be the first"


@pytest.mark.sample(5)
@pytest.mark.parametrize("fault", ["garbage", "cut", "reset", "hang"])
@pytest.mark.parametrize("mode", MODES)
def test_a_server_that_fails_gets_the_rest_again(server: WebhookServer, mode: str, fault: str) -> None:
    """What arrived before isn't sent a second time."""
    if mode != "batched":
        server.answers.append(WebhookAnswer())
        server.answers[0].stores = True
    server.answers.append(WebhookAnswer(fault=fault))
    events = [commit(1), commit(2), commit(3)]
    patience = "1 s" if fault == "hang" else "20 s"
    target = forwarder(url=server.url, mode=mode, request_timeout=patience, connections="1")
    first, second = sent(target, events, events)
    assert isinstance(first, TransientError)
    assert second is None
    assert [each["id"] for each in server.accepted] == ids(events)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_passes_by_itself_is_tried_again(server: WebhookServer, status: int) -> None:
    server.answers.append(WebhookAnswer(status, b"no", {"Retry-After": "7"}))
    first, second = sent(forwarder(url=server.url), SOME[:1], SOME[:1])
    assert isinstance(first, TransientError)
    assert getattr(first, "retry_after", None) == 7.0
    assert second is None


@pytest.mark.parametrize("status", [301, 302, 307, 401, 403, 404, 410, 415])
def test_what_somebody_has_to_change(server: WebhookServer, status: int) -> None:
    server.answers.append(WebhookAnswer(status, b"", {"Location": f"{server.url}/login"}))
    (error,) = sent(forwarder(url=server.url), SOME[:1])
    assert isinstance(error, TerminalError)
    assert not isinstance(error, RefusedEventsError)
    assert [each.method for each in server.requests] == ["POST"], "a redirect must not be followed"


@pytest.mark.parametrize("mode", MODES)
def test_what_is_refused_is_named_and_the_rest_arrives(server: WebhookServer, mode: str) -> None:
    events = [commit(number) for number in range(1, 12)]
    server.refused = set(ids([events[3], events[8]]))
    (error,) = sent(forwarder(url=server.url, mode=mode), events)
    assert isinstance(error, RefusedEventsError)
    assert error.reasons.keys() == {3, 8}
    assert f"a field of {events[3].event_id} is wrong" in error.reasons[3]
    assert [each["id"] for each in server.accepted] == ids(
        [each for each in events if each not in (events[3], events[8])]
    )


@pytest.mark.parametrize("mode", MODES)
def test_one_that_is_too_large_is_refused_before_it_is_sent(server: WebhookServer, mode: str) -> None:
    events = [commit(1), commit(2, application="x" * 5000), commit(3)]
    (error,) = sent(forwarder(url=server.url, mode=mode, max_bytes="4 KiB"), events)
    assert isinstance(error, RefusedEventsError)
    assert error.reasons.keys() == {1}
    assert "max.bytes" in error.reasons[1]
    assert [each["id"] for each in server.accepted] == ids([events[0], events[2]])


def test_batches_keep_below_the_largest_size(server: WebhookServer) -> None:
    events = [commit(number) for number in range(1, 40)]
    assert sent(forwarder(url=server.url, mode="batched", max_bytes="8 KiB"), events) == [None]
    assert [each["id"] for each in server.accepted] == ids(events)
    sizes = [len(each.body) for each in server.posts]
    assert max(sizes) <= 8192
    assert min(sizes[:-1]) > 8192 - 1500, "a batch isn't sent before it is full"


def test_an_answer_without_end_ends(server: WebhookServer) -> None:
    server.answers.append(WebhookAnswer(fault="endless"))
    (error,) = sent(forwarder(url=server.url, request_timeout="20 s"), SOME[:1])
    assert isinstance(error, TransientError)
    assert "500" in str(error)
    assert len(str(error)) < 1000


def test_a_server_that_is_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (error,) = sent(forwarder(url=f"http://127.0.0.1:{port}/x"), SOME[:1])
    assert isinstance(error, TransientError)


def test_a_call_that_was_given_up_sends_nothing_more(server: WebhookServer) -> None:
    server.answers.append(WebhookAnswer(fault="hang"))
    events = [commit(1), commit(2)]

    async def go() -> None:
        target = forwarder(url=server.url)
        await cancelled_when(server.asked.is_set, target.handle(batch(events)))
        server.released.set()
        await target.handle(batch(events[:1]))
        await target.close()

    asyncio.run(go())
    assert [each["id"] for each in server.accepted] == ids(events[:1])


@pytest.mark.parametrize("mode", MODES)
def test_a_server_that_fails_at_random_gets_every_event_in_order(
    server: WebhookServer, mode: str, tmp_path: Path
) -> None:
    """Through the whole machinery: batches, retries, offsets. It also restarts now and then."""
    chance = random.Random(f"{seeds.seed()}{mode}")
    stage = Stage(tmp_path, partitions=3)
    events = [commit(number, job=f"job{number % 7}") for number in range(1, 120)]
    for number, event in enumerate(events):
        stage.bus.append(event, number % 7 % 3)
    server.chaos, server.fault_rate = chance, 0.3
    target = forwarder(url=server.url, mode=mode, request_timeout="150 ms")
    original = server.answer

    def restarting(request: Any) -> WebhookAnswer:
        if chance.random() < 0.02:
            server.faults.append("restart")
            return WebhookAnswer(fault="cut")
        return original(request)

    server.answer = restarting  # type: ignore[method-assign]
    runner = stage.runner(target, batch="4")

    async def go() -> None:
        await asyncio.wait_for(runner.run(), LONG)
        await target.close()

    asyncio.run(go())
    stage.state.close()
    assert (runner.metrics.dead_letters, runner.metrics.lag) == (0, 0)
    assert server.faults
    received = server.events()
    assert sorted(each["id"] for each in received) == sorted(ids(events))
    for job in range(7):
        name = f"default/job{job}"
        ours = [each["id"] for each in received if each["partitionkey"] == name]
        assert ours == ids([each for each in events if key_of(each).decode() == name])


OK, ERROR = CheckStatus.OK, CheckStatus.ERROR


@pytest.mark.parametrize(
    ("status", "rights"),
    [(200, OK), (405, OK), (401, ERROR), (302, ERROR), (404, CheckStatus.WARNING), (410, CheckStatus.WARNING)],
)
def test_checking_writes_nothing(server: WebhookServer, status: int, rights: CheckStatus) -> None:
    server.answers.append(WebhookAnswer(status))
    assert checked(forwarder(url=server.url)) == [("server", OK), ("rights", rights)]
    assert [each.method for each in server.requests] == ["OPTIONS"]


def test_checking_one_that_is_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert checked(forwarder(url=f"http://127.0.0.1:{port}/x")) == [("server", ERROR)]


class TestTheHandshake:
    def test_nothing_is_sent_without_consent(self, server: WebhookServer) -> None:
        target = forwarder(url=server.url, origin="headwater.example")
        first, second = sent(target, SOME[:1], SOME[:1])
        assert isinstance(first, TerminalError)
        assert "doesn't consent" in str(first)
        assert isinstance(second, TerminalError)
        assert [each.method for each in server.requests] == ["OPTIONS", "OPTIONS"]
        assert server.requests[0].headers["webhook-request-origin"] == "headwater.example"
        assert checked(forwarder(url=server.url, origin="headwater.example"))[-1] == ("consent", ERROR)

    @pytest.mark.parametrize("answer", ["headwater.example", "*"])
    def test_with_consent_every_message_names_its_origin(self, server: WebhookServer, answer: str) -> None:
        server.consents_to = answer
        target = forwarder(url=server.url, origin="headwater.example", request_rate="600")
        assert sent(target, SOME, SOME[:1]) == [None, None]
        assert [each.method for each in server.requests].count("OPTIONS") == 1
        assert server.requests[0].headers["webhook-request-rate"] == "600"
        assert {each.headers["origin"] for each in server.posts} == {"headwater.example"}
        assert checked(forwarder(url=server.url, origin="headwater.example"))[-1] == ("consent", OK)

    def test_a_server_that_is_busy_has_not_refused(self, server: WebhookServer) -> None:
        server.consents_to = "*"
        server.answers.append(WebhookAnswer(503))
        first, second = sent(forwarder(url=server.url, origin="headwater.example"), SOME[:1], SOME[:1])
        assert isinstance(first, TransientError)
        assert second is None

    def test_the_rate_that_was_granted_is_kept(self, server: WebhookServer) -> None:
        server.consents_to, server.rate = "*", "120"
        options = WebhookOptions(url=server.url, origin="headwater.example")
        now, waits = [1000.0], list[float]()

        async def pause(seconds: float) -> None:
            waits.append(seconds)
            now[0] += seconds

        async def go() -> None:
            target = HttpEndpoint(options)
            permission = Permission(options, target, clock=lambda: now[0], pause=pause)
            for _ in range(4):
                await permission.take()
            await target.close()

        asyncio.run(go())
        assert waits == [0.5, 0.5, 0.5]


def test_nothing_of_a_url_is_logged_or_shown(
    server: WebhookServer, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """The paths of Slack's and others' webhooks are secrets; a server that repeats them doesn't make us do so."""
    secret = "T0000aaaaB1111bbbbC2222cccc"
    file = tmp_path / "url"
    file.write_text(f"{server.url}/{secret}\n", "utf-8")
    server.answers += [WebhookAnswer(500, f"cannot POST /hook/{secret}".encode()), WebhookAnswer(400, secret.encode())]
    target = forwarder(url_file=str(file))
    with caplog.at_level(logging.DEBUG):
        errors = sent(target, SOME[:1], SOME[:1], SOME[:1])
    assert server.posts[0].path == f"/hook/{secret}"
    assert [type(each) for each in errors] != [type(None)] * 3
    assert all(secret not in str(each) for each in errors)
    assert secret not in caplog.text
    assert secret not in "".join(target.preview(SOME[0]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "one of url"),
        ({"url": "http://a", "url_file": "b"}, "one of url"),
        ({"url": "ftp://a"}, "http://"),
        ({"url": "http://"}, "no URL"),
        ({"url": "http://a b/"}, "no URL"),
        ({"urll": "http://a"}, "did you mean url"),
        ({"url": "http://a", "mode": "batch"}, "mode"),
        ({"url": "http://a", "source": "no uri"}, "source"),
        ({"url": "http://a", "origin": "http://b"}, "origin"),
        ({"url": "http://a", "request_rate": "5"}, "without origin"),
        ({"url": "http://a", "max_bytes": "10"}, "max.bytes"),
        ({"url": "http://a", "header_ce-id": "1"}, "already"),
        ({"url": "http://a", "header_X": "a\r\nY: b"}, "characters"),
        ({"url": "http://a", "ca": "/nowhere.pem"}, "ca /nowhere.pem"),
        ({"url": "http://a", "client_key": "/nowhere.pem"}, "client.certificate"),
        ({"url": "http://a", "client_certificate": "/nowhere.pem"}, "client.certificate /nowhere.pem"),
        ({"url": "http://a", "secret_file": "/nowhere"}, "secret.file /nowhere can't be read"),
        ({"url": "http://a", "token_variable": "HEADWATER_NOT_THERE"}, "token.variable HEADWATER_NOT_THERE"),
    ],
)
def test_options_that_are_wrong(options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        forwarder(**options)
