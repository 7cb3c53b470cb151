"""The DataHub forwarder beside the SDK's bare emitter that sends the same proposals, already made, to the same server
over loopback: python -m tests.benchmarks.forward_datahub

The server is a process of its own and answers 200 to everything. The emitter sends all proposals of a batch with one
call, and splits it as it does by itself. The forwarder leaves out what is the same twice, such as the schema of a table
that a hundred jobs read.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from functools import partial

from datahub.emitter.rest_emitter import DataHubRestEmitter

from headwater.events import Event
from headwater.events.catalog import CreateTable
from headwater.events.jobs import JobLineage
from headwater.events.names import JobName
from headwater.forwarders.api import BusEvent, ForwarderContext
from headwater.forwarders.datahub import DataHubForwarder
from headwater.forwarders.datahub.mapping import datahub_proposals
from headwater.forwarders.datahub.options import DataHubNames
from tests.benchmarks.harness import HEADER, Aims, compare, row
from tests.kit.forwarders.datahub_cases import CASES
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
            body = b'{"value": "success"}'
            writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%s" % (len(body), body))
    except asyncio.IncompleteReadError:
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 24)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


def many(case: str) -> list[Event]:
    """The event of a case so many times, each of another commit, job or table."""
    event = CASES[case]
    if isinstance(event, CreateTable):
        names = [event.identifier.model_copy(update={"table": f"orders_{number}"}) for number in range(EVENTS)]
        return [event.model_copy(update={"identifier": name}) for name in names]
    if isinstance(event, JobLineage):
        return [event.model_copy(update={"job": JobName(name=f"step_{number}")}) for number in range(EVENTS)]
    return [event.model_copy(update={"sequence": number, "barrier": number}) for number in range(EVENTS)]


def forwarded(loop: asyncio.AbstractEventLoop, ours: DataHubForwarder, batch: list[BusEvent]) -> None:
    loop.run_until_complete(ours.handle(batch))


def measure(url: str) -> int:
    aims = Aims()
    print(HEADER)
    for case in ("commit", "lineage", "table_created"):
        bus = MemoryBus()
        batch = [BusEvent(event, bus.append(event)) for event in many(case)]
        proposals = [each for event in batch for each in datahub_proposals(event.event, DataHubNames())]
        ours = DataHubForwarder(ForwarderContext("datahub", {"url": url}))
        bare = DataHubRestEmitter(url, openapi_ingestion=False)
        loop = asyncio.new_event_loop()
        compared = compare(
            partial(forwarded, loop, ours, batch),
            partial(bare.emit_mcps, proposals),
            calls=3,
        )
        loop.run_until_complete(ours.close())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
        bare.close()
        print(row(f"{EVENTS} of {case}, {len(proposals)} proposals", compared))
        aims.at_least(f"{case}: the forwarder beside the bare emitter", compared.ratio, AIM)
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
