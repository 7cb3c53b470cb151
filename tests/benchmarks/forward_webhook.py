"""The webhook forwarder beside bare httpx that sends the same bytes, already made, to the same server over loopback:
python -m tests.benchmarks.forward_webhook

The server is a process of its own and answers 201 to everything. With one connection both send one request after
another, over one client. A batch is one request for 100 events, so that making it is nearly all there is to do: it is
shown beside a bare client that has the bytes already, and beside one that makes the JSON of the events itself.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import httpx

from headwater.events.json_form import event_object
from headwater.forwarders.api import BusEvent, ForwarderContext
from headwater.forwarders.webhook import WebhookForwarder
from headwater.forwarders.webhook.messages import EncodedEvent, MessageFormat, WebhookMessage, joined
from headwater.forwarders.webhook.options import WebhookOptions
from headwater.testing.examples import BEGAN, COMMITTED, JOB, PRODUCER, RUN
from tests.benchmarks.forward_openlineage import SERVER
from tests.benchmarks.harness import HEADER, Aims, Compared, compare, row
from tests.kit.forwarders.stage import MemoryBus

AIM = 0.7
EVENTS = 100
STRUCTURED, BINARY, BATCHED = "structured", "binary", "batched"


def commits() -> list[BusEvent]:
    bus = MemoryBus()
    stamp = {"producer": PRODUCER, "time": BEGAN, "run": RUN}
    events = [
        COMMITTED.model_copy(
            update={
                **stamp,
                "job": JOB.model_copy(update={"name": f"job{number % 10}"}),
                "sequence": number,
                "barrier": COMMITTED.barrier + number,
            }
        )
        for number in range(1, EVENTS + 1)
    ]
    return [BusEvent(event, bus.append(event)) for event in events]


def messages_of(options: dict[str, str], batch: list[BusEvent]) -> list[WebhookMessage]:
    form = MessageFormat(WebhookOptions(url="http://a", mode=options.get("mode", "structured")))
    encoded = [EncodedEvent(index, each.event, form.message(each.event)) for index, each in enumerate(batch)]
    if form.is_batched:
        return [joined(part) for part in form.batches(encoded)]
    return [each.message for each in encoded]


def measure_mode(options: dict[str, str], url: str, batch: list[BusEvent], *, makes_json: bool = False) -> Compared:
    loop = asyncio.new_event_loop()
    ours = WebhookForwarder(ForwarderContext("webhook", {"url": url, **options}))
    messages = messages_of(options, batch)

    async def bare(client: httpx.AsyncClient) -> None:
        for each in messages:
            (await client.post(url, content=each.body, headers=each.headers)).raise_for_status()

    async def making(client: httpx.AsyncClient) -> None:
        body = json.dumps([event_object(each.event) for each in batch])
        (await client.post(url, content=body, headers=messages[0].headers)).raise_for_status()

    client = httpx.AsyncClient()
    compared = compare(
        lambda: loop.run_until_complete(ours.handle(batch)),
        lambda: loop.run_until_complete((making if makes_json else bare)(client)),
        calls=1,
        rounds=9,
    )
    loop.run_until_complete(ours.close())
    loop.run_until_complete(client.aclose())
    loop.close()
    return compared


def measure(url: str) -> int:
    batch, aims = commits(), Aims()
    print(f"batches of {EVENTS} commits of 10 jobs; batches a second")
    print(HEADER)
    for mode in (STRUCTURED, BINARY):
        compared = measure_mode({"mode": mode, "connections": "1"}, url, batch)
        print(row(mode, compared))
        aims.at_least(f"{mode}: beside the bare client", compared.ratio, AIM)
    print(row("structured, 4 connections", measure_mode({"mode": STRUCTURED, "connections": "4"}, url, batch)))
    print(row("batched", measure_mode({"mode": BATCHED}, url, batch)))
    compared = measure_mode({"mode": BATCHED}, url, batch, makes_json=True)
    print(row("batched, the bare client makes its JSON too", compared))
    aims.at_least("batched: beside a client that makes its JSON", compared.ratio, AIM)
    return aims.report()


def main() -> int:
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            return measure(f"http://127.0.0.1:{server.stdout.readline().strip()}/hook")
        finally:
            server.kill()


if __name__ == "__main__":
    raise SystemExit(main())
