"""The contract of forwarders: kept by those of headwater, by the smallest one, and broken by those that are wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

from headwater.config import read_config
from headwater.events import Event
from headwater.forwarders.api import BusEvent, Forwarder, ForwarderContext, RefusedEventsError
from headwater.forwarders.datahub import DataHubForwarder
from headwater.forwarders.datahub.forwarder import datahub_proposals
from headwater.forwarders.datahub.options import DataHubConfig
from headwater.forwarders.openlineage import OpenLineageForwarder
from headwater.testing.examples import EXAMPLES
from headwater.testing.forwarders import ExampleLineage, ForwarderContract
from tests.kit.forwarders.datahub_server import Answer, DataHubServer, datahub_server
from tests.kit.forwarders.http_target import Fault, HttpTarget, http_target
from tests.kit.forwarders.targets import Recorder, recorded

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"


class TestRecorder(ForwarderContract):
    """The one that other tests send to."""

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "target"
        self.refused: dict[str, str] = {}

    def create(self, context: ForwarderContext) -> Forwarder:
        options = {**context.options, "file": str(self.file), **self.refused}
        return Recorder(ForwarderContext(context.name, options, context.lineage))

    def arrived(self) -> Sequence[Hashable]:
        return [event for event, _ in recorded(self.file)]

    def identities(self, event: Event) -> Sequence[Hashable]:
        return [str(event.event_id)]

    @contextmanager
    def away(self) -> Generator[None]:
        place = self.file.with_suffix(".away")
        place.touch()
        yield
        place.unlink()


class TestOpenLineage(ForwarderContract):
    options: ClassVar[dict[str, str]] = {"request.timeout": "20 s"}

    @pytest.fixture(autouse=True)
    def _server(self) -> Iterator[None]:
        with http_target() as self.server:
            yield

    server: HttpTarget

    def create(self, context: ForwarderContext) -> Forwarder:
        options = {**context.options, "url": self.server.url}
        return OpenLineageForwarder(ForwarderContext(context.name, options, context.lineage))

    def arrived(self) -> Sequence[Hashable]:
        return [_canonical(body) for body in self.server.received]

    def identities(self, event: Event) -> Sequence[Hashable]:
        forwarder = OpenLineageForwarder(ForwarderContext("x", {"file": "unused"}, ExampleLineage()))
        return [_canonical(text.encode()) for text in forwarder.preview(event)]

    def away(self) -> AbstractContextManager[Any]:
        return self.server.away()

    def hanging(self) -> AbstractContextManager[Any]:
        return self.server.failing(lambda _: Fault(hangs=True))

    def refusing(self, event: Event) -> AbstractContextManager[Any]:
        bad = set(self.identities(event))
        return self.server.failing(lambda body: Fault(422) if _canonical(body) in bad else None)


@pytest.mark.long
class TestDataHub(ForwarderContract):
    options: ClassVar[dict[str, str]] = {"request.timeout": "20 s"}
    ordered: ClassVar[bool] = False  # what several events say of one aspect joins

    @pytest.fixture(autouse=True)
    def _server(self) -> Iterator[None]:
        with datahub_server() as self.server:
            yield

    server: DataHubServer

    def create(self, context: ForwarderContext) -> Forwarder:
        options = {**context.options, "url": self.server.url}
        return DataHubForwarder(ForwarderContext(context.name, options, context.lineage))

    def arrived(self) -> Sequence[Hashable]:
        return [(each["entityUrn"], each["aspectName"]) for each in self.server.proposals]

    def identities(self, event: Event) -> Sequence[Hashable]:
        config = read_config(DataHubConfig, {"url": self.server.url})
        told = [proposal.to_obj() for proposal in datahub_proposals(event, config)]
        return [(each["entityUrn"], each["aspectName"]) for each in told]

    def contents(self) -> Any:
        return json.dumps([list(self.server.aspects.items()), list(self.server.entries.items())], default=str)

    @contextmanager
    def away(self) -> Generator[None]:
        self.server.answers.extend([Answer(503)] * 1_000)
        yield
        self.server.answers.clear()


PAGE: dict[str, Any] = {"__name__": "writing-a-forwarder"}
for _block in re.findall(r"```python\n(.*?)```", (DOCS / "writing-a-forwarder.md").read_text("utf-8"), re.DOTALL):
    exec(compile(_block, "writing-a-forwarder.md", "exec", dont_inherit=True), PAGE)  # noqa: S102 - our own page


CONTRACT_OF_THE_PAGE: Any = PAGE["AuditContract"]


class TestForwarderOfThePage(CONTRACT_OF_THE_PAGE):  # type: ignore[misc]
    @pytest.fixture(autouse=True)
    def _server(self) -> Iterator[None]:
        with http_target() as self.server:
            yield

    server: HttpTarget


def test_the_smallest_forwarder_of_the_page_has_fifteen_lines() -> None:
    first = re.findall(r"```python\n(.*?)```", (DOCS / "writing-a-forwarder.md").read_text("utf-8"), re.DOTALL)[0]
    assert len(first.splitlines()) <= 15


def _canonical(body: bytes) -> str:
    return json.dumps(json.loads(body), sort_keys=True)


class Losing(Recorder):
    """Says that it sent what it didn't."""

    async def handle(self, batch: Sequence[BusEvent]) -> None:
        await super().handle(batch[:-1] if len(batch) > 1 else batch)


class Reversing(Recorder):
    async def handle(self, batch: Sequence[BusEvent]) -> None:
        await super().handle(list(reversed(batch)))


class Swallowing(Recorder):
    """Logs an error and goes on, as many do."""

    async def handle(self, batch: Sequence[BusEvent]) -> None:
        with suppress(Exception):
            await super().handle(batch)


class Misnaming(Recorder):
    async def handle(self, batch: Sequence[BusEvent]) -> None:
        try:
            await super().handle(batch)
        except RefusedEventsError as e:
            raise RefusedEventsError({index + 1: why for index, why in e.reasons.items()}) from e


BROKEN = [
    (Losing, "test_each_event_arrives_in_order"),
    (Reversing, "test_each_event_arrives_in_order"),
    (Swallowing, "test_a_target_that_is_away_is_a_transient_error_and_then_everything_arrives"),
    (Misnaming, "test_what_is_refused_is_named_and_the_rest_arrives"),
]


@pytest.mark.parametrize(("broken", "case"), BROKEN, ids=lambda value: getattr(value, "__name__", value))
def test_the_contract_finds_what_is_wrong(broken: type[Recorder], case: str, tmp_path: Path) -> None:
    class Suite(TestRecorder):
        events = EXAMPLES

        def create(self, context: ForwarderContext) -> Forwarder:
            options = {**context.options, "file": str(self.file), **self.refused}
            return broken(ForwarderContext(context.name, options, context.lineage))

        @contextmanager
        def refusing_kind(self) -> Generator[None]:
            yield

        def refusing(self, event: Event) -> AbstractContextManager[Any]:
            bad = next(each for each in EXAMPLES if each.kind == event.kind)
            assert bad == event
            self.refused = {"refuse": event.kind}
            return self.refusing_kind()

    suite = Suite()
    suite.file, suite.refused = tmp_path / "target", {}
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        getattr(suite, case)()
