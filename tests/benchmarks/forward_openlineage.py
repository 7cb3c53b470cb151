"""The OpenLineage forwarder beside the bare client that sends the same messages, already made, to the same server over
loopback: python -m tests.benchmarks.forward_openlineage

The server is a process of its own and answers 201 to everything. Both send one message after another.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys

from openlineage.client.transport.http import HttpConfig, HttpTransport

from headwater.events.jobs import JobLineage
from headwater.forwarders.api import BusEvent, ForwarderContext
from headwater.forwarders.openlineage import OpenLineageForwarder
from headwater.forwarders.openlineage.mapping import openlineage_events
from headwater.testing.examples import BEGAN, COMMITTED, EXAMPLES, JOB, PRODUCER, RUN
from tests.benchmarks.harness import HEADER, Aims, compare, row
from tests.kit.forwarders.stage import MemoryBus

AIM = 0.7
EVENTS = 100
SERVER = """
import asyncio
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            length = head.lower().partition(b"content-length:")[2].split(b"\\r\\n", 1)[0]
            await reader.readexactly(int(length))
            writer.write(b"HTTP/1.1 201 Created\\r\\nContent-Length: 0\\r\\n\\r\\n")
    except asyncio.IncompleteReadError:
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


class OneLineage:
    """Knows the lineage of the example."""

    def __init__(self) -> None:
        self._known = next(event for event in EXAMPLES if isinstance(event, JobLineage))

    def get(self, fingerprint: bytes) -> JobLineage | None:
        return self._known if fingerprint == self._known.fingerprint else None


def measure(url: str) -> int:
    lineage, bus = OneLineage(), MemoryBus()
    stamp = {"producer": PRODUCER, "time": BEGAN, "job": JOB, "run": RUN}
    commits = [
        COMMITTED.model_copy(update={**stamp, "sequence": number, "barrier": COMMITTED.barrier + number})
        for number in range(EVENTS)
    ]
    batch = [BusEvent(event, bus.append(event)) for event in commits]
    messages = [message for event in commits for message in openlineage_events(event, lineage)]
    ours = OpenLineageForwarder(ForwarderContext("openlineage", {"url": url}, lineage))
    bare = HttpTransport(HttpConfig(url=url))
    loop = asyncio.new_event_loop()
    compared = compare(
        lambda: loop.run_until_complete(ours.handle(batch)),
        lambda: [bare.emit(message) for message in messages],
        calls=3,
    )
    loop.run_until_complete(ours.close())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    bare.close()
    print(HEADER)
    print(row(f"batches of {EVENTS} commits, {len(messages)} messages", compared))
    aims = Aims()
    aims.at_least("the forwarder beside the bare client", compared.ratio, AIM)
    return aims.report()


def main() -> int:
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            return measure(f"http://127.0.0.1:{server.stdout.readline().strip()}")
        finally:
            server.kill()


if __name__ == "__main__":
    raise SystemExit(main())
