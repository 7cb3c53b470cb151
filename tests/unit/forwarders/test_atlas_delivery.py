"""What is said to Atlas: as it was recorded with a real one, and what each of its answers means."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from headwater.errors import ConfigurationError, HeadwaterError, TerminalError, TransientError
from headwater.events import Event
from headwater.forwarders.api import (
    BusEvent,
    CheckableForwarder,
    ClosableForwarder,
    PreviewableForwarder,
    RefusedEventsError,
)
from headwater.forwarders.atlas.forwarder import atlas_changes
from headwater.forwarders.atlas.messages import small_requests, with_guids
from headwater.forwarders.atlas.options import AtlasNames
from headwater.forwarders.atlas.resolving import AtlasPlan
from headwater.forwarders.atlas.types import definitions
from headwater.forwarders.http_delivery import BusyTargetError
from headwater.spi import CheckStatus
from tests.kit.atlas.cases import CASES
from tests.kit.atlas.exchange import FILE, Replay, Step, forwarder, served
from tests.kit.atlas.story import ID, STORY, table, told
from tests.kit.forwarders.sending import error_of, sent
from tests.kit.forwarders.stage import MemoryBus

pytestmark = pytest.mark.slow

REGISTERED = {definition["name"]: definition for _, definition in definitions()}


class Scripted(Replay):
    """An Atlas that is empty, has all types, and answers what a test says to writes."""

    def __init__(self, *answers: tuple[int, object]) -> None:
        super().__init__([])
        self.answers = list(answers)
        self.asked: list[Step] = []

    def answer(self, asked: Step) -> Step:
        self.asked.append(asked)
        path = asked["path"].partition("?")[0].removeprefix("/api/atlas")
        if asked["method"] != "GET":
            status, answer = self.answers.pop(0) if self.answers else (200, {})
            return {"status": status, "answer": answer}
        if path.startswith("/v2/types/typedef/name/"):
            return {"status": 200, "answer": REGISTERED[path.rpartition("/")[2]]}
        fixed = {"/admin/version": {"Version": "2.1.0"}, "/admin/status": {"Status": "ACTIVE"}}
        return {"status": 200, "answer": fixed.get(path, {"entities": []})}

    @property
    def writes(self) -> list[Step]:
        return [step for step in self.asked if step["method"] != "GET"]


def code(text: str) -> dict[str, str]:
    return {"errorCode": text, "errorMessage": "it says"}


def result(server: Scripted, events: Sequence[Event] = STORY[:1]) -> HeadwaterError | None:
    with served(server):
        return error_of(forwarder(server.url), events)


def test_what_is_asked_and_written_is_what_a_real_atlas_was_told() -> None:
    server = Replay(json.loads(FILE.read_text(encoding="utf-8")))
    with served(server):
        error = error_of(forwarder(server.url), STORY)
    assert server.difference is None
    assert server.left == []
    assert error is None


def test_a_replay_notices_what_is_different() -> None:
    server = Replay(json.loads(FILE.read_text(encoding="utf-8")))
    with served(server):
        error_of(forwarder(server.url, namespace="other"), STORY)
    assert server.difference is not None


@pytest.mark.parametrize(
    ("status", "answer", "kind"),
    [
        (503, {}, BusyTargetError),
        (500, "a page", BusyTargetError),
        (429, {}, BusyTargetError),
        (404, code("ATLAS-404-00-00A"), BusyTargetError),
        (409, code("ATLAS-409-00-004"), BusyTargetError),
        (404, code("ATLAS-404-00-001"), TerminalError),
        (404, "a page", TerminalError),
        (401, {}, TerminalError),
        (403, code("ATLAS-403-00-001"), TerminalError),
        (302, {}, TerminalError),
        (404, code("ATLAS-404-00-007"), RefusedEventsError),
        (400, code("ATLAS-400-00-01D"), RefusedEventsError),
    ],
)
def test_each_answer_means_that_it_comes_again_or_never_can(status: int, answer: object, kind: type) -> None:
    error = result(Scripted((status, answer), (status, answer)))
    assert isinstance(error, kind)
    assert isinstance(error, RefusedEventsError) is (kind is RefusedEventsError)


def test_what_atlas_refuses_is_named_and_the_others_are_sent() -> None:
    bad = (400, code("ATLAS-400-00-01D"))
    first, second = told(table("a", ID), table("b", ID))
    server = Scripted(bad, bad)
    error = result(server, [first, second])
    assert isinstance(error, RefusedEventsError)
    assert error.reasons.keys() == {0}
    assert "ATLAS-400-00-01D" in error.reasons[0]
    names = [each["attributes"]["name"] for each in server.writes[-1]["body"]["entities"]]
    assert names == ["sales", "b", "id"]


def test_a_missing_type_is_looked_for_again_once_somebody_registered_it() -> None:
    server = Scripted((404, code("ATLAS-404-00-001")))
    with served(server):
        first, second = sent(forwarder(server.url), STORY[:1], STORY[:1])
    assert isinstance(first, TerminalError)
    assert second is None
    looked = [step["path"] for step in server.asked if step["path"].endswith("typedef/name/headwater_job")]
    assert len(looked) == 2


def test_events_that_do_not_concern_each_other_go_out_together() -> None:
    runs = [CASES["run_finished"], *told(table("a", ID), first=50)]
    server = Scripted()
    assert result(server, runs) is None
    assert len(server.writes) == 1
    assert result(again := Scripted(), told(table("a", ID), table("a", ID))) is None
    assert len(again.writes) == 2, "the second depends on what the first wrote"


def test_a_server_that_is_away_is_waited_for() -> None:
    error = error_of(forwarder("http://127.0.0.1:1"), STORY[:1])
    assert isinstance(error, TransientError)
    assert not isinstance(error, TerminalError)


def test_no_password_is_told_in_an_error() -> None:
    error = error_of(forwarder("http://u:tiger@127.0.0.1:1"), STORY[:1])
    assert error is not None
    assert "tiger" not in str(error)


def test_checking_tells_the_version_and_the_types_and_writes_nothing() -> None:
    server = Scripted()

    async def statuses() -> list[tuple[str, CheckStatus]]:
        to = forwarder(server.url)
        found = [(each.step, each.status) async for each in to.check()]
        await to.close()
        return found

    with served(server):
        assert asyncio.run(statuses()) == [("server", CheckStatus.OK), ("types", CheckStatus.OK)]
    assert server.writes == []


def test_who_is_given_up_writes_no_more() -> None:
    server = Scripted()

    async def go() -> None:
        to = forwarder(server.url)
        bus = MemoryBus()
        handling = asyncio.create_task(to.handle([BusEvent(event, bus.append(event)) for event in STORY]))
        while not server.asked:  # noqa: ASYNC110 - a server in a thread has no event of this loop
            await asyncio.sleep(0.001)
        handling.cancel()
        await asyncio.gather(handling, return_exceptions=True)
        await to.close()

    with served(server):
        asyncio.run(go())
    assert len(server.writes) < len(STORY)


def test_a_preview_is_json_and_sends_nothing() -> None:
    to = forwarder("http://127.0.0.1:1")
    assert isinstance(to, PreviewableForwarder)
    assert isinstance(to, CheckableForwarder)
    assert isinstance(to, ClosableForwarder)
    shown: list[Any] = [json.loads(text) for text in to.preview(CASES["table_dropped"])]
    asyncio.run(to.close())
    assert shown == [{"change": "DELETE", "type": "headwater_dataset", "qualifiedName": "lake.sales.orders@primary"}]


def test_a_file_of_certificates_that_is_missing_is_the_configurations_fault() -> None:
    with pytest.raises(ConfigurationError, match="ca"):
        forwarder("https://127.0.0.1:1", ca="/nowhere.pem")


def test_a_wide_table_goes_out_in_pieces_that_find_what_they_refer_to() -> None:
    columns = [ID.model_copy(update={"name": f"c{number}"}) for number in range(25)]
    plan = AtlasPlan()
    (event,) = told(table("wide", *columns))
    plan.add(atlas_changes(event, AtlasNames()), {})
    requests = list(small_requests(plan.entities, 10))
    assert [len(each) for each in requests] == [2, 10, 10, 5, 1]
    known: dict[str, str] = {}
    for request in requests:
        here = {entity["guid"] for entity in request}
        for entity in with_guids(request, known):
            for value in entity.get("relationshipAttributes", {}).values():
                for each in value if isinstance(value, list) else [value]:
                    assert each["guid"] in here or each["guid"].startswith("real")
        known.update((guid, f"real{guid}") for guid in here if guid not in known)
    (last,) = with_guids(requests[-1], known)
    assert last["guid"].startswith("real")
    assert len(last["relationshipAttributes"]["columns"]) == 25
