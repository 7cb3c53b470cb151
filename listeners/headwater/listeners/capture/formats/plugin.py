"""What a table format brings: one object, found by an entry point of the group `headwater.formats`.

Whatever the core knows of a format stands here. Our own formats have no other way in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from headwater.events import Format
from headwater.events.identity.catalogs import CatalogReader
from headwater.events.names import Generation
from headwater.events.scalars import FieldPath
from headwater.listeners.capture.context import CaptureContext, ExternalRows

if TYPE_CHECKING:
    from importlib.abc import Traversable

    from headwater.listeners.capture.catalog.named_tables import NamedTable
    from headwater.listeners.capture.catalog.table_evidence import TableEvidence
    from headwater.listeners.capture.commands import CommandRule
    from headwater.listeners.capture.formats.protocol import TableFormat
    from headwater.listeners.capture.plan.columns.analysis import RowChangesReader
    from headwater.listeners.capture.statements import Statement

    EvidenceReader: TypeAlias = Callable[[NamedTable, Statement, CaptureContext], TableEvidence | None]

LAST: Final = 100
"""The order of the format that takes whatever is a file of no other one."""


@dataclass(frozen=True, kw_only=True)
class JavaPart:
    """Sources in Java, compiled in a driver that has the class `probe`. All are in the package `headwater.capture`."""

    probe: str
    folder: Traversable | None = None
    extractor: str | None = None
    """The class that implements FormatExtractor."""
    hooks: tuple[str, ...] = ()
    """Classes with static methods `install` and `uninstall`."""
    always_hooked: bool = False
    """Its hooks reach into nobody's library: they are installed whatever `capture.hooks` says."""

    def reflection(self) -> str:
        """What the sources reach by reflection, as their `reflection.txt` declares it."""
        found = None if self.folder is None else self.folder.joinpath("reflection.txt")
        return found.read_text("utf-8") if found is not None and found.is_file() else ""

    def sources(self) -> dict[str, bytes]:
        """By file name."""
        folder = self.folder
        found = () if folder is None else (file for file in folder.iterdir() if file.name.endswith(".java"))
        return {file.name: file.read_bytes() for file in found}


@dataclass(frozen=True, kw_only=True)
class TableFacts:
    """What the format's extractor tells of a table that no interface of Spark's has a place for."""

    location: str | None = None
    generation: Generation | None = None
    primary_key: tuple[FieldPath, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FormatPlugin:
    """A format. Only `name`, `reader` and `packages` are needed; each other field is what some formats have."""

    name: str
    """The format's word: the key of what its extractor writes, and of `CatalogContext.factory`."""
    reader: TableFormat
    packages: tuple[str, ...]
    """What the names of the library's classes begin with: which plans and catalogs are this format's."""
    order: int = 80
    """Formats are asked in this order, then by name; ours have 10 to 60, and files of no format LAST."""
    java: JavaPart | None = None
    commands: Mapping[str, CommandRule] = field(default_factory=dict)
    """The library's own commands, by the simple name of their class."""
    row_changes: Mapping[str, RowChangesReader] = field(default_factory=dict)
    """Those of them that change rows one by one, and how their assignments and conditions are found."""
    catalogs: Mapping[str, CatalogReader] = field(default_factory=dict)
    """By the class of a Spark catalog, what identifies the catalog that its options point at."""
    session_catalogs: frozenset[str] = frozenset()
    """Those of the classes that do nothing to a named table without Spark's own catalog doing it."""
    procedure_catalogs: frozenset[str] = frozenset()
    """Classes of catalogs that only procedures read and write through."""
    log_directory: str | None = None
    """The directory in a table's that its log is in: a scan by an RDD below a directory with one reads that table."""
    providers: frozenset[str] = frozenset()
    """Names by which tables are made USING the format, in lower case."""
    external_rows: ExternalRows | None = None
    hidden_columns: frozenset[str] = frozenset()
    """Columns that the format keeps beside a table's own: they are nobody's lineage."""
    table_facts: Callable[[Mapping[str, Any]], TableFacts] | None = None
    """Reads what the extractor wrote into a table."""
    evidence: EvidenceReader | None = None
    """Says what DDL did to a table, by the format's own metadata."""

    @property
    def format(self) -> Format:
        """As events name it."""
        return self.reader.format

    @property
    def is_last(self) -> bool:
        return self.order == LAST

    def owns(self, class_name: str) -> bool:
        return class_name.startswith(self.packages)
