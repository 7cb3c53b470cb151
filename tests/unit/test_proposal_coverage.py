"""Pages that say where each statement of somebody's design is: what they name is there, and no statement lacks its row.

It finds a command, flag, key, event, table, function, parameter, page or heading that such a page names and that went
or was renamed; and a row that was dropped with its statement. Commands alone are also looked at by `test_cli_tree`.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel

import headwater.events
from headwater.cli.app import leaf_parser
from headwater.cli.commands import TREE, CommandPath, Group, Leaf
from headwater.lineage.sql import METADATA
from headwater.lineage.sql.pip5_views import VIEWS

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted((DOCS / "proposals").glob("*.md"))
STATEMENTS = {
    "flip-294.md": {
        "What is to be reported": 11,
        "Listener and events": 22,
        "Which table it is": 6,
        "Use case of job lineage": 4,
        "Configuration and execution": 8,
    },
    "hudi-rfc-24.md": {"": 19},
    "paimon-branches.md": {"What it is for": 10, "Layout": 3, "Operations": 12, "Interfaces": 15},
    "paimon-pip-5.md": {
        "What it is for": 7,
        "Steps 1 and 2: catalog, tables, job": 9,
        "Step 3: debug and validate": 5,
        "Step 4: correct": 9,
        "Metadata database": 17,
        "Interfaces": 12,
        "Table lineage": 2,
        "Data lineage and aligned versions": 15,
        "Future work there": 4,
    },
    "streaming-warehouse.md": {
        "Background": 13,
        "Design": 14,
        "Applications": 8,
        "Progress there": 2,
        "Future work there": 6,
        "Questions and answers": 6,
    },
}
"""How many rows each part of a design needs, counted in the design itself."""
IDENTIFIERS = {
    "flip-294.md": """
        CatalogModificationListener onEvent CatalogModificationEvent context CatalogContext getCatalogName getClass
        getFactoryIdentifier getConfiguration DatabaseModificationEvent CatalogDatabase CreateDatabaseEvent
        AlterDatabaseEvent newDatabase ignoreIfNotExists DropDatabaseEvent TableModificationEvent identifier
        CatalogBaseTable CreateTableEvent ignoreIfExists AlterTableEvent tableChanges TableChange DropTableEvent
        CatalogModificationListenerFactory createListener getUserClassLoader getIOExecutor connector topic
        properties.bootstrap.servers properties.group.id topic-pattern table.catalog-modification.listeners
        TableEnvironmentImpl CatalogManager Builder.listeners createTable dropTable alterTable createDatabase
        dropDatabase alterDatabase""",
    "hudi-rfc-24.md": """
        InstantGeneratorOperator WriteProcessOperator FlinkHoodieIndex StreamWriteOperatorCoordinator REQUESTED
        BucketAssigner BucketWriter HoodieFlinkWriteClient WRITE_BUCKET_SIZE WRITE_BUFFER_SIZE UPSERT""",
    "paimon-branches.md": """
        BranchManager getMainBranch createBranch deleteBranch mergeBranch replaceMain scan.branch create-branch
        delete-branch merge-branch replace-main-branch --name --tag $branches name tag_name tagged_snapshot_id""",
    "paimon-pip-5.md": """
        table-lineage data-lineage type warehouse catalog_options key value source_job_lineage sink_job_lineage
        source_snapshot_lineage sink_snapshot_lineage job database table create_time barrier_id snapshot_id
        lineage-meta jdbc.driver jdbc.url jdbc.database jdbc.username jdbc.password scan.snapshot-id
        LineageMetaFactory identifier create LineageMetaContext.options storeSourceTableLineage
        deleteSourceTableLineage sourceTableLineages storeSinkTableLineage sinkTableLineages deleteSinkTableLineage
        storeSourceDataLineage sourceDataLineages storeSinkDataLineage sinkDataLineages TableLineageEntity
        getDatabase getTable getJob getCreateTime DataLineageEntity getBarrierId getSnapshotId
        JdbcLineageMetaOptions JDBC_DRIVER JDBC_URL JDBC_USERNAME JDBC_PASSWORD JDBC_DATABASE
        JdbcLineageMetaFactory IDENTIFIER JdbcLineageMeta DataSource CatalogOptionsTable TableLineageTable
        DataLineageTable delete-table-lineage delete-data-lineage --job FlinkTableFactory pipeline.name job_startup
        AlignedSnapshotSource createEnumerator createReader AlignedSourceReader discoveredSplits
        alignedSnapshotSended receivedCheckpoint start pollNext handleSourceEvents shouldTriggerCheckpoint
        AlignedEnumerator.snapshotState CheckpointEvent.checkpointId Committer.commit CommitListener
        notifyCommitComplete snapshotId commitKind""",
}
"""What the designs call their parts: each has to stand in a row of its page."""
VIEW_COLUMNS = {"job", "barrier_id", "database", "table", "snapshot_id", "create_time", "key", "value"}


class Row(NamedTuple):
    """A statement of a design, and what a page says of it."""

    page: str
    heading: str
    statement: str
    here: str

    @property
    def words(self) -> str:
        return f"{self.page}: {self.statement}"


def rows(text: str, page: str) -> Iterator[Row]:
    heading = ""
    for line in text.splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        elif line.startswith("| ") and not re.match(r"\| it (asks|says) ", line):
            _, statement, here, _ = (cell.strip() for cell in line.split("|"))
            yield Row(page, heading, statement, here)


ROWS = [row for page in PAGES for row in rows(page.read_text(), page.name)]


def found(name: str) -> bool:
    """Whether what stands in code type is anything of headwater's."""
    if name.startswith("headwater "):
        return is_command(name.split()[1:])
    if name.startswith("headwater."):
        return is_python(name)
    head, _, rest = name.partition(".")
    if head in VIEWS or head in METADATA.tables:
        return not rest or rest in (VIEW_COLUMNS if head in VIEWS else METADATA.tables[head].c)
    return has_member(event_classes()[head], rest) if head in event_classes() else name in keys()


def is_command(words: list[str]) -> bool:
    node: Group | Leaf = TREE
    path: CommandPath = ()
    while words and isinstance(node, Group):
        if words[0] not in node.children:
            return False
        path, node, words = (*path, words[0]), node.children[words[0]], words[1:]
    if isinstance(node, Group):
        return True
    if words and not words[0].startswith("--"):
        return False
    flags = {flag for option in leaf_parser(path, node.load()).options() for flag in option.option_strings}
    return {word for word in words if word.startswith("--")} <= flags


def is_python(name: str) -> bool:
    name, _, parameter = name.removesuffix(")").partition("(")
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            thing: Any = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            if not has_member(thing, part):
                return False
            thing = getattr(thing, part, None)
        return not parameter or parameter in inspect.signature(thing).parameters
    return False


def has_member(thing: Any, name: str) -> bool:
    fields = thing.model_fields if isinstance(thing, type) and issubclass(thing, BaseModel) else {}
    return not name or name in fields or hasattr(thing, name) or name in getattr(thing, "__annotations__", {})


@cache
def event_classes() -> dict[str, type]:
    modules = [import_module(f"headwater.events.{each.name}") for each in iter_modules(headwater.events.__path__)]
    classes = (thing for module in modules for thing in vars(module).values() if isinstance(thing, type))
    return {each.__name__: each for each in classes if each.__module__.startswith("headwater.events.")}


@cache
def keys() -> set[str]:
    """Of the reference, which `test_docs` holds to the code."""
    return set(re.findall(r"^\| `([^`]+)` \|", (DOCS / "configuration.md").read_text(), re.MULTILINE))


def leads_somewhere(link: str) -> bool:
    place, _, anchor = link.partition("#")
    page = DOCS / "proposals" / place
    if not page.is_file():
        return False
    return not anchor or anchor in {slug(each) for each in re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)}


def slug(heading: str) -> str:
    """The anchor that the site gives a heading."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())


def names_in(here: str) -> list[str]:
    """In code type, without statements of SQL."""
    named: list[str] = re.findall(r"`([^`]+)`", here)
    return [name for name in named if not re.fullmatch(r"[A-Z ]+", name)]


def links_in(here: str) -> list[str]:
    return re.findall(r"\]\(([^)]+)\)", here)


@pytest.mark.parametrize("page", STATEMENTS)
def test_what_a_page_names_is_there(page: str) -> None:
    named = {name for row in ROWS if row.page == page for name in names_in(row.here)}
    assert len(named) > 2
    assert [name for name in sorted(named) if not found(name)] == []


@pytest.mark.parametrize("page", STATEMENTS)
def test_where_a_page_leads_is_there(page: str) -> None:
    linked = {link for row in ROWS if row.page == page for link in links_in(row.here)}
    assert linked
    assert [link for link in sorted(linked) if not leads_somewhere(link)] == []


def is_answered(here: str) -> bool:
    """Whether there is something that is looked up, or a reason, or what is missing, in some words."""
    reason = re.search(r"\b(none|missing): (\S+ ){2}", f"{here} ", re.IGNORECASE)
    return bool(names_in(here) or links_in(here) or reason)


@pytest.mark.parametrize("page", STATEMENTS)
def test_each_statement_has_a_row_that_says_where_it_is_or_why_not(page: str) -> None:
    own = [row for row in ROWS if row.page == page]
    assert Counter(row.heading for row in own) == STATEMENTS[page]
    assert [row.words for row in own if not row.statement or not is_answered(row.here)] == []


@pytest.mark.parametrize("page", IDENTIFIERS)
def test_what_a_design_names_stands_in_a_row(page: str) -> None:
    statements = " ".join(row.statement for row in ROWS if row.page == page)
    code = re.findall(r"`([^`]+)`", statements)
    named = {word for each in code for words in each.split() for word in (words, *words.split("."))}
    assert [each for each in IDENTIFIERS[page].split() if each not in named] == []


def test_every_page_is_counted() -> None:
    assert {page.name for page in PAGES} == set(STATEMENTS)


@pytest.mark.parametrize(
    "name",
    [
        "headwater corect plan",
        "headwater validate again",
        "headwater correct plan --mood",
        "headwater.versions.aline",
        "headwater.versions.aligned_query(begin)",
        "Committed.inputz",
        "Comitted",
        "branches.from_tags",
        "sink_job_lineage.snapshot_id2",
        "spark.headwater.read.consistend",
    ],
)
def test_a_name_that_is_not_there_is_found_out(name: str) -> None:
    assert not found(name)


@pytest.mark.parametrize("link", ["../nowhere.md", "../branches.md#nowhere"])
def test_a_link_that_leads_nowhere_is_found_out(link: str) -> None:
    assert not leads_somewhere(link)
