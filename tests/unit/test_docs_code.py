"""The code on the pages for authors of plug-ins runs, and passes the suites that headwater's own plug-ins pass."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.errors import ConfigurationError
from headwater.events import Event
from headwater.events.envelope import EventId
from headwater.lineage.api import LineageMeta, LineageMetaContext, LineageMetaFactory
from headwater.spi import ListenerFactory
from headwater.testing.examples import DRAFTS
from headwater.testing.listeners import DurableListenerContract
from headwater.testing.memory import MemoryContext
from headwater.testing.stores import LineageMetaContract
from tests.kit.bus.scripts import bus_of

DOCS = Path(__file__).parents[2] / "docs"


def code_of(page: str) -> Any:
    """The names that a page's Python makes."""
    names: dict[str, Any] = {"__name__": page}
    for block in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL):
        exec(compile(block, page, "exec", dont_inherit=True), names)  # noqa: S102 - our own page
    return SimpleNamespace(**names)


LISTENER = code_of("writing-a-listener.md")
STORE = code_of("writing-a-store.md")


class TestListenerOfThePage(DurableListenerContract):
    passes_unknown_on = False

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "audit.jsonl"

    def create(self) -> Any:
        return LISTENER.AuditListener(self.file)

    def delivered(self, listener: Any) -> list[EventId]:
        lines = self.file.read_text("utf-8").splitlines() if self.file.exists() else []
        return [Event.from_json(line).event_id for line in lines]

    @contextmanager
    def _away(self) -> Iterator[None]:
        aside = self.file.with_suffix(".aside")
        if self.file.exists():
            self.file.rename(aside)
        self.file.mkdir()
        yield
        self.file.rmdir()
        if aside.exists():
            aside.rename(self.file)

    def refusing(self) -> AbstractContextManager[None]:
        return self._away()

    def stalling(self) -> AbstractContextManager[None]:
        return nullcontext()  # a file always answers


def test_the_smallest_listener_of_the_page_prints_each_event(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with bus_of(tmp_path, {"printing": LISTENER.PrintingFactory().create}) as bus:
        (event,) = bus.emit(DRAFTS[0])
        assert bus.stop(60)
    assert capsys.readouterr().out.splitlines() == [f"{event.kind} {event.time}"]


def test_the_factory_of_the_page_reads_its_section(tmp_path: Path) -> None:
    factory = LISTENER.AuditFactory()
    assert isinstance(factory, ListenerFactory)
    factory.create(MemoryContext("audit", {"file": str(tmp_path / "a")}, ThreadPoolExecutor()))
    with pytest.raises(ConfigurationError, match=r"spark\.headwater\.audit\.file"):
        factory.create(MemoryContext("audit", {}, ThreadPoolExecutor()))


class TestStoreOfThePage(LineageMetaContract):
    @pytest.fixture(autouse=True)
    def _store(self) -> None:
        self.store = STORE.DictStoreFactory().create(LineageMetaContext())

    def create(self) -> LineageMeta:
        store: LineageMeta = self.store
        return store


def test_the_factory_of_the_store_is_one() -> None:
    assert isinstance(STORE.DictStoreFactory(), LineageMetaFactory)
