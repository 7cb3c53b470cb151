"""Each page shows what its command gives, as HTML without anything active in it and as JSON."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from html.parser import HTMLParser
from typing import Any

import pytest
from sqlalchemy import text
from starlette.testclient import TestClient

from headwater.cli.app import leaf_parser
from headwater.cli.commands import TREE
from headwater.lineage.store import Store
from headwater.web import WebSettings, create_app
from headwater.web.questions import QuestionTimeoutError, StoreQuestions
from headwater.web.settings import QuestionLimits
from headwater.web.views import VIEWS
from headwater.web.views.base import LONGEST_NAME
from tests.kit.lineage.scripted_producer import store as store_events
from tests.kit.lineage.stories import StoryProducer
from tests.kit.stores import open_new_store

PAGE = {"Accept": "text/html"}
PARAMETERS = {
    "search": "q=da",
    "table": "name=lake.db.daily",
    "graph": "of=lake.db.daily&open-up=lake.db.orders",
    "snapshot": "of=lake.db.report@1",
    "compare": "one=lake.db.daily@1&other=lake.db.daily@2",
    "table/history": "table=lake.db.daily",
    "table/late": "table=lake.db.daily",
    "table/uses": "table=lake.db.daily",
    "table/jobs": "table=lake.db.daily",
    "table/names": "table=lake.db.daily",
    "table/snapshots": "table=lake.db.daily&limit=1",
    "job/tables": "job=rollup",
    "job/runs": "table=lake.db.daily",
    "version/show": "table=lake.db.report@1",
    "version/check": "tables=lake.db.daily&tables=lake.db.report",
    "version/align": "tables=lake.db.daily&tables=lake.db.report",
}
NAMED_BY_NOBODY = {"correct/show": "correction=c-none", "rollback/show": "name=r-none"}


class Read(HTMLParser):
    """The text of a page, and whatever in it a browser would act upon."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.active: list[str] = []
        self.links: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if (tag == "script" and not given.get("src")) or tag in {"style", "iframe", "object", "embed", "base"}:
            self.active.append(tag)
        self.active += [f"{tag} {name}" for name in given if name.startswith("on") or name == "style"]
        for name in ("href", "src", "action"):
            address = given.get(name)
            if address is not None:
                self.links.append(address)

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def read(site: TestClient, path: str) -> Read:
    answer = site.get(path, headers=PAGE)
    assert answer.status_code == 200, (path, answer.text)
    found = Read(answer.text)
    assert found.active == [], path
    assert all(link.startswith(("/", "#", "data:,")) and not link.startswith("//") for link in found.links), found.links
    return found


@pytest.mark.parametrize("path", [view.path for view in VIEWS if view.path not in NAMED_BY_NOBODY])
def test_each_page_is_there_for_people_and_programs(site: TestClient, path: str) -> None:
    query = f"?{PARAMETERS[path]}" if path in PARAMETERS else ""
    page = read(site, f"/{path}{query}")
    [command] = re.findall(r"The same in a terminal: (headwater [^\n]*?) For programs", page.text)
    words = shlex.split(command)[1:]
    node: Any = TREE
    place: tuple[str, ...] = ()
    while hasattr(node, "children"):
        place, node, words = (*place, words[0]), node.children[words[0]], words[1:]
    leaf_parser(place, node.load()).parse_args(words)
    answer = site.get(f"/{path}.json{query}")
    assert answer.headers["content-type"] == "application/json"
    by_header = site.get(f"/{path}{query}", headers={"Accept": "application/json"})
    assert answer.json().keys() == by_header.json().keys() != set()


@pytest.mark.parametrize("path", NAMED_BY_NOBODY)
def test_what_isnt_there_is_said(site: TestClient, path: str) -> None:
    answer = site.get(f"/{path}.json?{NAMED_BY_NOBODY[path]}")
    assert answer.status_code in {400, 404}
    assert "none" in answer.json()["message"]


def test_a_table_shows_its_neighbours_columns_and_snapshots(site: TestClient) -> None:
    found = read(site, "/table?name=lake.db.daily").text
    for words in (
        "orders",
        "report",
        "rollup",
        "lake.db.orders.amount",
        "lake.db.report.revenue",
        "lake.db.orders@(1..2]",
    ):
        assert words in found
    answer = site.get("/table.json?name=lake.db.daily").json()
    [total] = [each for each in answer["columns"] if each["name"] == "total"]
    assert [edge["source"]["path"] for edge in total["made_from"]] == [["amount"]]
    assert [each["snapshot"] for each in answer["snapshots"]["rows"]] == ["2", "1"]


def test_a_graph_begins_with_one_step_and_opens_where_more_is_known(site: TestClient) -> None:
    page = read(site, "/graph?of=lake.db.daily")
    assert "landing" not in page.text
    more = [link for link in page.links if "open-" in link]
    assert more == ["/graph?of=lake.db.daily&open-up=lake.db.orders"]
    opened = read(site, more[0])
    assert "landing" in opened.text
    assert [link for link in opened.links if "open-up" in link and "landing" in link] == []


def test_two_snapshots_side_by_side_say_what_differs(site: TestClient) -> None:
    rows = site.get("/compare.json?one=lake.db.daily@1&other=lake.db.daily@2").json()["rows"]
    orders = next(row for row in rows if row["source"] == "lake.db.orders")
    assert (orders["one"], orders["other"]) == ("1", "1..2")


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/table.json?name=lake.db.dayly", 404, "did you mean"),
        ("/table.json", 400, "/table needs name"),
        ("/table.json?name=a&name=b", 400, "takes name once, not 2 times"),
        ("/table/late.json?table=lake.db.daily&tabel=x", 400, "takes no 'tabel'; it takes table, limit"),
        ("/table/late.json?table=lake.db.daily&limit=many", 400, "isn't a number of things"),
        ("/table/late.json?table=lake.db.daily&store=/etc/passwd", 400, "takes no 'store'"),
        ("/graph.json?of=lake.db.daily&up=99", 400, "from 0 to 20"),
        ("/snapshot.json?of=lake.db.daily@99", 404, "99"),
        ("/nowhere.json", 404, "Not Found"),
    ],
)
def test_a_wrong_address_is_an_error_that_helps(site: TestClient, path: str, status: int, words: str) -> None:
    answer = site.get(path)
    assert (answer.status_code, words in answer.json()["message"]) == (status, True), answer.text
    page = site.get(path.replace(".json", ""), headers=PAGE)
    assert page.status_code == status
    assert Read(page.text).active == []


def test_everything_that_changes_something_is_refused(site: TestClient) -> None:
    for method in ("post", "put", "delete", "patch"):
        assert getattr(site, method)("/table?name=lake.db.daily").status_code == 405


def test_the_api_is_described(site: TestClient) -> None:
    described = site.get("/openapi.json").json()
    assert set(described["paths"]) == {f"/{view.path}.json" for view in VIEWS}
    late = described["paths"]["/table/late.json"]["get"]["parameters"]
    assert [(each["name"], each["required"]) for each in late] == [("table", True), ("limit", False)]


HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "{{ 7 * 7 }}",
    "\u202egnp.elbat",
    "\x1b[31mred",
    "a&b=c#d?e",
    "t" * 70_000,
)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_name_is_only_a_name(name: str) -> None:
    with open_new_store(":memory:") as store:
        producer = StoryProducer()
        producer.commit("t@1", reads=["a@1"], job=name)
        with store.engine.begin() as connection:
            store_events(connection, producer)
            connection.execute(text("UPDATE aliases SET table_name = :name WHERE table_name = 't'"), {"name": name})
        site = TestClient(create_app(store, WebSettings()), base_url="http://127.0.0.1")
        listed = read(site, "/table/list")
        addresses = [link for link in listed.links if link.startswith("/table?") and link != "/table?name=lake.db.a"]
        assert len(addresses) == (len(name) < LONGEST_NAME)
        for path in (*addresses, "/search?q=t", "/job/list", "/search", "/table/late?table=lake.db.a"):
            found = site.get(path, headers=PAGE)
            assert found.status_code in {200, 404}, (path, found.text[:500])
            assert Read(found.text).active == []
            assert "\x1b" not in found.text
            assert len(found.text) < 1_000_000


def test_a_question_that_takes_too_long_is_ended(store: Store) -> None:
    endless = text("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")

    def ask(given: Store) -> object:
        with given.engine.connect() as connection:
            return connection.scalar(endless)

    async def main() -> None:
        questions = StoreQuestions(store, QuestionLimits(seconds=0.2))
        await questions.ask(ask)

    with pytest.raises(QuestionTimeoutError, match=r"no answer within 0\.2 seconds"):
        asyncio.run(main())


def test_numbers_of_snapshots_are_texts(site: TestClient) -> None:
    for path in ("snapshot", "table", "table/snapshots", "table/late"):
        text_of = site.get(f"/{path}.json?{PARAMETERS[path]}").text
        numbers = list(_values(json.loads(text_of), {"snapshot", "parent", "since", "barrier"}))
        assert numbers, path
        assert all(value is None or isinstance(value, str) for value in numbers), path


def _values(found: Any, names: set[str]) -> list[Any]:
    if isinstance(found, dict):
        return [v for k, v in found.items() if k in names and not isinstance(v, (dict, list))] + [
            each for value in found.values() for each in _values(value, names)
        ]
    return [each for value in found for each in _values(value, names)] if isinstance(found, list) else []
