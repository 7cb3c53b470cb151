"""What is to be drawn of an answer: a box for each table and each job, rows in a box for versions and columns."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headwater.lineage.questions.lineage_answers import LineageAnswer
from headwater.lineage.questions.tables import TableEdge
from headwater.lineage.rendering.lineage_graph import PART, GraphEdge, GraphNode, Id, LineageGraph, build_graph

_LONG: Final = re.compile(r"\d{9,}")
_CHANGES: Final = re.compile(r"\((.+)\.\.(.+)\]")
_SHOWN: Final = 5
_MOST_JOBS: Final = 4
"""Of more than so many between the same two tables one box stands for all."""


@dataclass(frozen=True)
class Mark:
    """Something that a box is to be noticed for."""

    words: str
    is_bad: bool = False


@dataclass(frozen=True)
class Marks:
    """What is known beside the answer itself: by the name of a table or a job, by the label of a version."""

    tables: Mapping[str, Mark] = field(default_factory=dict)
    jobs: Mapping[str, Mark] = field(default_factory=dict)
    rows: Mapping[str, Mark] = field(default_factory=dict)
    is_box_whole_job: bool = False
    """Whether a job that writes several tables is one box. Else it is one for each of them, so that what it reads for
    one table isn't taken for what it reads for another."""


@dataclass
class BoxRow:
    id: Id
    text: str
    hint: str
    at: float = 0.0
    """Rows of a box are in the order of time: of when they were made, or read first."""
    is_root: bool = False
    mark: Mark | None = None


@dataclass
class Box:
    id: Id
    title: str
    above: str = ""
    """The catalog and the database, or the folder."""
    group: str = ""
    """The database: boxes of one have one colour."""
    hint: str = ""
    is_job: bool = False
    is_root: bool = False
    mark: Mark | None = None
    rows: dict[Id, BoxRow] = field(default_factory=dict)


@dataclass(frozen=True)
class Connector:
    """From a box or a row to another."""

    source: Id
    target: Id
    hint: str = ""
    is_direct: bool = True
    in_cycle: bool = False


@dataclass
class Drawing:
    title: str
    boxes: dict[Id, Box] = field(default_factory=dict)
    connectors: dict[Connector, None] = field(default_factory=dict)

    def owner_of(self) -> dict[Id, Id]:
        """By row its box, and by box itself."""
        own: dict[Id, Id] = {key: key for key in self.boxes}
        return own | {row: key for key, box in self.boxes.items() for row in box.rows}

    def groups(self) -> list[str]:
        """Layers of a warehouse come in their order, others as they are met."""
        met = dict.fromkeys(box.group for box in self.boxes.values() if box.group)
        return sorted(
            met, key=lambda place: (LAYERS.get(layer_of(place), ("", len(LAYERS)))[1], list(met).index(place))
        )


LAYERS: Final[Mapping[str, tuple[str, int]]] = {
    "ods": ("as it comes in", 0),
    "dim": ("dimensions", 1),
    "dwd": ("details", 2),
    "dws": ("summaries", 3),
    "ads": ("for applications", 4),
}
"""How layers of a warehouse are usually called."""


def layer_of(database: str) -> str:
    """`ods_shop` is of the layer ods."""
    return re.split(r"[_.\-]", database.lower())[0]


def build_drawing(answers: LineageAnswer[Any] | Iterable[LineageAnswer[Any]], marks: Marks | None = None) -> Drawing:
    """Of one answer, or of several of one kind in one picture."""
    given = [answers] if isinstance(answers, LineageAnswer) else list(answers)
    pictures = [build_graph(answer_given) for answer_given in given]
    drawing = Drawing("; ".join(f"{picture.of}: {picture.direction}" for picture in pictures))
    drawer = _Drawer(drawing, marks or Marks(), by_job=any(isinstance(row, TableEdge) for a in given for row in a))
    for picture in pictures:
        drawer.draw(picture)
    for box in drawing.boxes.values():
        box.rows = dict(sorted(box.rows.items(), key=lambda state: state[1].at))
    return drawing


def shorten(text: str) -> str:
    """Long numbers by their end, by which people distinguish them."""
    return _LONG.sub(lambda found: f"…{found[0][-_SHOWN:]}", text)


def _shown_range(part: str) -> str:
    """Changes behind one version up to another as an arrow."""
    changes = _CHANGES.fullmatch(part)
    return f"{shorten(changes[1])} → {shorten(changes[2])}" if changes else shorten(part)


class _Drawer:
    def __init__(self, drawing: Drawing, marks: Marks, *, by_job: bool) -> None:
        self._drawing = drawing
        self._marks = marks
        self._by_job = by_job

    def draw(self, picture: LineageGraph) -> None:
        ids = {key: self._node(node, is_root=key in picture.roots) for key, node in picture.nodes.items()}
        for line in picture.lines.values():
            for connector in self._connectors(line, ids, picture):
                self._drawing.connectors[connector] = None

    def _node(self, node: GraphNode, *, is_root: bool) -> Id:
        table = node.table or node.label
        box = self._drawing.boxes.setdefault(("table", table), self._box(table))
        if not node.part:
            box.is_root = box.is_root or is_root
            box.hint = f"{table}: {node.note}" if node.note and not node.table else box.hint
            return box.id
        hint = f"{node.label}: {node.note}" if node.note else node.label
        row = box.rows.setdefault(
            node.id, BoxRow(node.id, _shown_range(node.part), hint, mark=self._marks.rows.get(node.label))
        )
        row.is_root = row.is_root or is_root
        row.at = min(row.at or math.inf, node.at.timestamp()) if node.at else row.at
        row.hint = hint if node.note else row.hint
        return row.id

    def _box(self, table: str) -> Box:
        above, title, group = _split_label(table)
        return Box(("table", table), title, above, group, hint=table, mark=self._marks.tables.get(table))

    def _connectors(self, line: GraphEdge, ids: Mapping[Id, Id], picture: LineageGraph) -> Iterator[Connector]:
        source, target = ids[line.source], ids[line.target]
        if not self._by_job or not line.jobs:
            yield Connector(source, target, _words(line), line.is_direct and line.label != PART, line.in_cycle)
            return
        for job in self._jobs(line, picture.nodes[line.target]):
            yield Connector(source, job, in_cycle=line.in_cycle)
            yield Connector(job, target, in_cycle=line.in_cycle)

    def _jobs(self, line: GraphEdge, target: GraphNode) -> Iterator[Id]:
        """A box for each job that writes a table: what it reads comes together there."""
        if len(line.jobs) > _MOST_JOBS:
            yield self._job(f"{len(line.jobs)} jobs", ", ".join(line.jobs), (line.source, line.target), None)
            return
        for job in line.jobs:
            title = job.removesuffix(f".{target.table or target.label}")
            key = job if self._marks.is_box_whole_job else (job, line.target)
            yield self._job(title, job, key, self._marks.jobs.get(job))

    def _job(self, title: str, hint: str, key: Id, mark: Mark | None) -> Id:
        identity = ("job", key)
        self._drawing.boxes.setdefault(identity, Box(identity, title, hint=hint, is_job=True, mark=mark))
        return identity


def _split_label(table: str) -> tuple[str, str, str]:
    """What stands above the name, the name, and the group."""
    if "/" in table:
        above, _, title = table.rstrip("/").rpartition("/")
        return above, title, ""
    parts = table.split(".")
    return ".".join(parts[:-1]), parts[-1], parts[-2] if len(parts) > 1 else ""


def _words(line: GraphEdge) -> str:
    through = f"through {', '.join(line.jobs)}" if line.jobs else ""
    return ", ".join(filter(None, (line.label, through)))
