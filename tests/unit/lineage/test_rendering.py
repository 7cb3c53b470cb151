"""Answers in the forms that people and programs take them: names that mean something to a form come out as they are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import Connection

from headwater.lineage.questions.columns import upstream_columns
from headwater.lineage.questions.paths import path_between
from headwater.lineage.questions.snapshots import upstream_snapshots
from headwater.lineage.questions.states import upstream_state
from headwater.lineage.questions.tables import downstream_tables, upstream_tables
from headwater.lineage.rendering import as_dot, as_graph, as_json, as_mermaid, as_text
from headwater.lineage.rendering.graph_formats import escaped, quoted
from tests.kit.lineage.all_stories import columns, cycle, diamond, streams
from tests.kit.lineage.stories import StoryProducer, with_story

HOSTILE = 'a "b" \\ <c> | #d; `e`\nf'


def test_a_tree(connection: Connection) -> None:
    answer = upstream_tables(with_story(connection, diamond), "db.d")
    assert as_text(answer).splitlines() == [
        "lake.db.d: upstream",
        "",
        "lake.db.d  by etl",
        "├─ lake.db.b  by etl",
        "│  └─ lake.db.a",
        "└─ lake.db.c  by etl",
        "   └─ lake.db.a",
        "",
        "complete until: 2026-03-01 12:03:00Z",
    ]


def test_where_several_jobs_write_a_table_each_line_says_through_which(connection: Connection) -> None:
    def both(s: StoryProducer) -> None:
        s.commit("c@1", reads=["a@1", "shared@1"], job="one")
        s.commit("c@2", reads=["b@1", "shared@1"], job="two")

    answer = upstream_tables(with_story(connection, both), "db.c")
    assert as_text(answer).splitlines()[2:6] == [
        "lake.db.c  by one, two",
        "├─ lake.db.a  (through one)",
        "├─ lake.db.b  (through two)",
        "└─ lake.db.shared",
    ]
    assert "by one, two" in as_mermaid(answer)


def test_a_tree_of_what_is_made_of_it(connection: Connection) -> None:
    text = as_text(downstream_tables(with_story(connection, cycle), "db.a"))
    assert "lake.db.a\n└─ lake.db.b  by etl  (in a cycle)\n   ├─ lake.db.a  by etl  (in a cycle)\n" in text


def test_a_range_has_its_commits_below_it(connection: Connection) -> None:
    text = as_text(upstream_snapshots(with_story(connection, streams), "db.b@2"))
    assert "├─ lake.db.a@(3..7]\n│  ├─ lake.db.a@4  APPEND by etl, 2026-03-01 12:04:00Z\n│  │  └─ lake.db.raw@4" in text
    assert "  - lake.db.raw@4, 5, 6, 7: its writer is unknown" in text


def test_a_state_names_ranges(connection: Connection) -> None:
    text = as_text(upstream_state(with_story(connection, streams), "db.b@3", depth=1))
    assert "state" in text.splitlines()[0]
    assert "├─ lake.db.a@(0..8]" in text
    assert "└─ lake.db.x@1..2" in text


def test_what_decides_about_rows_hangs_below_each_column(connection: Connection) -> None:
    text = as_text(upstream_columns(with_story(connection, columns), "db.c.total"))
    assert "├─ lake.db.b.y (aggregation)" in text
    assert "lake.db.a.k (filter)" in text


def test_a_path(connection: Connection) -> None:
    text = as_text(path_between(with_story(connection, diamond), "db.a", "db.d"))
    assert "lake.db.a\n└─> lake.db.b  by etl\n   └─> lake.db.d  by etl" in text
    nothing = as_text(path_between(connection, "db.d", "db.a"))
    assert "nothing is known" in nothing


def test_json_names_what_was_asked_and_what_it_lacks(connection: Connection) -> None:
    answer = upstream_snapshots(with_story(connection, streams), "db.b@2", depth=1)
    content = json.loads(as_json(answer))
    assert (content["form"], content["of"], content["direction"]) == (1, "lake.db.b@2", "upstream")
    assert (content["basis"], content["is_partial"], content["limits"]) == ("commit", False, [])
    first = content["edges"][0]
    assert (first["edge"], first["kind"], first["mode"], first["since"]) == ("snapshot", "APPEND", "CHANGES", "3")
    known = {"namespace": "s3://lake", "name": "w/a", "known_as": ["lake.db.a"]}
    assert first["source"]["dataset"] == known
    assert first["source"]["snapshot"] == "7"


@pytest.mark.parametrize("question", [upstream_tables, upstream_state, upstream_snapshots])
def test_every_answer_is_json(connection: Connection, question: Any) -> None:
    content = json.loads(as_json(question(with_story(connection, diamond), "db.d")))
    assert {each["depth"] for each in content["edges"]} == {1, 2}


@pytest.mark.slow
def test_a_graph_of_networkx(connection: Connection) -> None:
    import networkx as nx

    graph = as_graph(upstream_tables(with_story(connection, cycle), "db.c"))
    assert set(nx.ancestors(graph, "lake.db.c")) == {"lake.db.a", "lake.db.b"}
    assert graph.edges["lake.db.a", "lake.db.b", 0]["in_cycle"]
    assert not graph.edges["lake.db.b", "lake.db.c", 0]["in_cycle"]


def test_what_means_something_to_dot_is_quoted() -> None:
    assert quoted(HOSTILE) == '"a \\"b\\" \\\\ <c> | #d; `e`\\\\nf"'


def test_what_means_something_to_mermaid_is_an_entity() -> None:
    assert escaped(HOSTILE) == "a #quot;b#quot; \\ #lt;c#gt; #124; #35;d; #96;e#96;\\nf"


def test_dot_and_mermaid_draw_each_node_once(connection: Connection) -> None:
    answer = upstream_tables(with_story(connection, diamond), "db.d")
    dot, mermaid = as_dot(answer), as_mermaid(answer)
    assert dot.count("[label=") == 4
    assert dot.count(" -> ") == 4
    assert mermaid.count('["') == 4
    assert mermaid.count(" --> ") == 4
