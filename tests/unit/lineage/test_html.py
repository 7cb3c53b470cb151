"""An answer as a page: what is drawn is what was answered, nothing is loaded, and no name is taken for HTML."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from headwater.lineage.questions.columns import downstream_columns
from headwater.lineage.questions.paths import path_between
from headwater.lineage.questions.snapshots import upstream_snapshots
from headwater.lineage.questions.states import upstream_state
from headwater.lineage.questions.tables import downstream_tables, upstream_tables
from headwater.lineage.rendering import as_html
from headwater.lineage.rendering.html import Mark, Marks, graph
from headwater.lineage.rendering.html.layout import BoxSize, GraphLayout, Key, LayoutLink, compute_layout
from headwater.lineage.rendering.html.page import command, concatenate, table
from headwater.lineage.rendering.html.svg import width_of
from tests.kit.lineage.all_stories import columns, cycle, diamond, streams
from tests.kit.lineage.html_page import Read
from tests.kit.lineage.stories import StoryProducer, with_story


class TestPage:
    def test_tables_go_through_their_jobs(self, connection: Connection) -> None:
        page = Read(as_html(upstream_tables(with_story(connection, diamond), "db.d")))
        assert [each.text for each in page.of("h1")] == ["What lake.db.d was made from"]
        made = {f"lake.db.{name}: by etl" for name in "bcd"}
        sources = {*made, "lake.db.a"} - {"lake.db.d: by etl"}
        wires = {("job etl", each) for each in made} | {(each, "job etl") for each in sources}
        assert page.wires("g") == wires
        assert len(page.of("g", "job")) == 3  # one for each table that it makes
        assert [each.attributes["aria-label"] for each in page.of("g", "table", "root")] == ["lake.db.d: by etl"]

    def test_snapshots_are_rows_of_their_tables(self, connection: Connection) -> None:
        page = Read(as_html(upstream_snapshots(with_story(connection, diamond), "db.d@1")))
        assert {each.text.splitlines()[0] for each in page.of("text", "part")} == {"1"}
        label = "lake.db.d@1: APPEND by etl, 2026-03-01 12:03:00Z"
        assert {source for source, target in page.wires("g") if target == label} == {
            "lake.db.b@1: APPEND by etl, 2026-03-01 12:01:00Z",
            "lake.db.c@1: APPEND by etl, 2026-03-01 12:02:00Z",
        }

    def test_columns_are_rows_too(self, connection: Connection) -> None:
        page = Read(as_html(downstream_columns(with_story(connection, columns), "db.a", "x")))
        assert ("lake.db.a.x", "lake.db.b.y: by etl") in page.wires("g")
        assert [each.attributes["aria-label"] for each in page.of("g", "row", "root")] == ["lake.db.a.x"]

    def test_nothing_is_loaded(self, connection: Connection) -> None:
        page = as_html(upstream_tables(with_story(connection, diamond), "db.d"))
        assert {each.attributes["href"] for each in Read(page).elements if "href" in each.attributes} == {"data:,"}
        assert re.findall(r"\bsrc\s*=|url\(|@import|fetch\(", page) == []
        assert "http" not in page

    def test_how_far_it_goes_is_said(self, connection: Connection) -> None:
        page = Read(as_html(upstream_snapshots(with_story(connection, diamond), "db.d@1")))
        assert "Complete until: 2026-03-01 12:03:00Z" in [each.text for each in page.of("p")]
        assert any("its writer is unknown" in each.text for each in page.of("li"))

    @pytest.mark.parametrize("ask", [upstream_tables, upstream_state, upstream_snapshots, downstream_tables])
    @pytest.mark.parametrize("story", [diamond, cycle, streams, columns])
    def test_every_answer_is_well_formed(self, connection: Connection, ask: Any, story: Any) -> None:
        page = Read(as_html(ask(with_story(connection, story), "db.b")))
        assert len(page.of("h1")) == 1
        assert page.of("g") or page.of("p"), "a picture, or words that nothing is known"

    def test_a_way_and_nothing(self, connection: Connection) -> None:
        found = as_html(path_between(with_story(connection, diamond), "db.a", "db.d"))
        assert "The way lake.db.a" in found
        nothing = Read(as_html(path_between(connection, "db.d", "db.a")))
        assert "Nothing is known." in [each.text for each in nothing.of("p")]

    def test_no_name_is_html(self, connection: Connection) -> None:
        name = "<script>alert(1)</script>\"'&"

        def hostile(s: StoryProducer) -> None:
            s.commit("b@1", reads=["a@1"], job=name)

        answer = downstream_tables(with_story(connection, hostile), "db.a")
        page = Read(as_html(answer))
        assert len(page.of("script")) == 1
        assert f"job {name}" in {target for _, target in page.wires("g")}

    def test_what_is_too_large_for_an_eye_is_text(
        self, connection: Connection, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("headwater.lineage.rendering.html.page.MOST", 5)
        page = Read(as_html(upstream_tables(with_story(connection, diamond), "db.d")))
        assert page.of("svg") == []
        assert any("lake.db.c  by etl" in each.text for each in page.of("pre"))

    def test_marks_stand_beside_names(self, connection: Connection) -> None:
        marks = Marks(tables={"lake.db.d": Mark("late", is_bad=True)}, jobs={"etl": Mark("stream")})
        page = Read(graph(upstream_tables(with_story(connection, diamond), "db.d"), "g", marks))
        assert [each.attributes["aria-label"] for each in page.of("g", "bad")] == ["lake.db.d: by etl. late"]
        assert "stream" in {each.text for each in page.of("text", "mark")}

    def test_long_numbers_are_shown_by_their_end_and_named_in_full(self, connection: Connection) -> None:
        def long(s: StoryProducer) -> None:
            s.commit("b@5179299526185056830", reads=["a@8234827348273482734"])

        page = Read(as_html(upstream_snapshots(with_story(connection, long), "db.b")))
        assert {each.text for each in page.of("text", "part")} == {"…56830", "…82734"}
        assert any("lake.db.a@8234827348273482734" in target for target, _ in page.wires("g"))

    def test_parts_of_a_page(self) -> None:
        assert "<td>a &lt;b&gt;</td><td>-</td>" in table(("x", "y"), [("a <b>", None)])
        assert "a &amp;&amp; b" in command("a && b")
        assert concatenate("<", command("x")).startswith("&lt;<div")


SIZES = st.builds(BoxSize, st.floats(20, 200), st.floats(20, 120))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[Key, BoxSize], list[LayoutLink]]:
    sizes: dict[Key, BoxSize] = dict(enumerate(draw(st.lists(SIZES, min_size=1, max_size=9))))
    ends, ports = st.integers(0, len(sizes) - 1), st.floats(-60, 60)
    return sizes, draw(st.lists(st.builds(LayoutLink, ends, ends, ports, ports), max_size=16))


class TestLayout:
    @settings(max_examples=40, deadline=None)
    @given(graphs())
    def test_boxes_are_apart_and_lines_have_their_ends(
        self, drawn: tuple[dict[Key, BoxSize], list[LayoutLink]]
    ) -> None:
        sizes, links = drawn
        found = compute_layout(sizes, links, between=10)
        assert set(found.at) == set(sizes)
        for one, other in combinations(sizes, 2):
            assert not overlaps(found, sizes, one, other)
        for key, size in sizes.items():
            assert -0.01 <= found.at[key].x <= found.width - size.width + 0.01
            assert -0.01 <= found.at[key].y <= found.height - size.height + 0.01
        for link in links:
            if link.source != link.target:
                way = found.ways[link]
                assert {way[0].x, way[-1].x} <= sides(found, sizes, link.source) | sides(found, sizes, link.target)

    def test_data_flows_to_the_right(self) -> None:
        found = compute_layout(
            dict.fromkeys("abcd", BoxSize(50, 20)), [LayoutLink("a", "b"), LayoutLink("b", "d"), LayoutLink("a", "d")]
        )
        assert found.at["a"].x < found.at["b"].x < found.at["d"].x

    def test_what_can_be_drawn_without_crossings_is(self) -> None:
        links = [
            LayoutLink("a", "y"),
            LayoutLink("b", "x"),
            LayoutLink("c", "z"),
            LayoutLink("x", "p"),
            LayoutLink("y", "q"),
            LayoutLink("z", "r"),
        ]
        found = compute_layout(dict.fromkeys("abcxyzpqr", BoxSize(50, 20)), links)
        ranks = [[found.at[key].y for key in layer] for layer in ("abc", "yxz", "qpr")]
        assert len({tuple(sorted(range(3), key=rank.__getitem__)) for rank in ranks}) == 1

    def test_a_chain_is_straight(self) -> None:
        found = compute_layout(
            {"a": BoxSize(50, 20), "b": BoxSize(60, 40), "c": BoxSize(50, 30)},
            [LayoutLink("a", "b"), LayoutLink("b", "c")],
        )
        assert {way[0].y for way in found.ways.values()} == {20.0}

    def test_a_cycle_goes_back(self) -> None:
        found = compute_layout(dict.fromkeys("ab", BoxSize(50, 20)), [LayoutLink("a", "b"), LayoutLink("b", "a")])
        assert found.ways[LayoutLink("b", "a")][0].x > found.ways[LayoutLink("b", "a")][-1].x


def overlaps(found: GraphLayout, sizes: dict[Key, BoxSize], one: Key, other: Key) -> bool:
    (left, right), (a, b) = (found.at[one], found.at[other]), (sizes[one], sizes[other])
    beside = left.x + a.width <= right.x + 0.01 or right.x + b.width <= left.x + 0.01
    return not beside and left.y < right.y + b.height - 0.01 and right.y < left.y + a.height - 0.01


def sides(found: GraphLayout, sizes: dict[Key, BoxSize], key: Key) -> set[float]:
    return {found.at[key].x, found.at[key].x + sizes[key].width}


@pytest.mark.parametrize(
    ("text", "size", "is_bold", "shown"),
    [
        ("not written by the last run", 11, True, 164.6),
        ("revenue_today", 15, True, 124.2),
        ("order_details", 15, True, 110.9),
        ("COMMUNAL_SUMMARY", 15, True, 193.1),
        ("daily_report_of_the_warehouse", 12.5, True, 217.7),
        ("daily_report_of_the_warehouse", 12.5, False, 193.8),
        ("not in top10", 10.5, False, 64.0),
    ],
)
def test_boxes_have_room_for_a_wide_font(text: str, size: float, is_bold: bool, shown: float) -> None:
    """What a browser measured of DejaVu Sans, the widest font that the page asks for."""
    assert shown <= width_of(text, size, is_bold=is_bold) < 1.2 * shown
