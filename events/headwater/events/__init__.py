"""What happened: typed, immutable events, and how they become bytes, JSON and text.

Here are the kinds of events, the names of what they are about, and `encode`, `decode` and `redact`. The rest is in its
module: the parts of events in `.jobs`, `.catalog`, `.changes`, `.tables`, `.health` and `.administration`; `.producer`
makes events, `.avro` is the wire form, `.types` are Spark's types, `.identity` names datasets, `.presentation` shows
events to people. Nothing here imports another package of headwater but `errors`, `config` and `plugins`.
"""

from headwater.events.administration import CatalogOptionsDeclared, DatasetsUnified, LineageDeleted
from headwater.events.catalog import (
    AlterDatabase,
    AlterTable,
    AlterView,
    BranchMerged,
    CorrectionSwitched,
    CreateBranch,
    CreateDatabase,
    CreateTable,
    CreateTag,
    CreateView,
    DropBranch,
    DropDatabase,
    DropTable,
    DropTag,
    DropView,
    MainReplaced,
    Truncate,
)
from headwater.events.column_lineage import ColumnLineage
from headwater.events.envelope import Event, EventFamily, EventId, UnknownEvent
from headwater.events.errors import DecodeError, EncodeError
from headwater.events.front import decode, encode, redact
from headwater.events.health import Closed, Gap, Heartbeat
from headwater.events.jobs import Committed, Input, JobLineage, JobStarted, JobStatusChanged, Output, StatementFailed
from headwater.events.kinds import KINDS, AnyEvent
from headwater.events.names import CatalogId, DatasetId, JobName, TableName
from headwater.events.scalars import Format
from headwater.events.tables import Table

__all__ = [
    "KINDS",
    "AlterDatabase",
    "AlterTable",
    "AlterView",
    "AnyEvent",
    "BranchMerged",
    "CatalogId",
    "CatalogOptionsDeclared",
    "Closed",
    "ColumnLineage",
    "Committed",
    "CorrectionSwitched",
    "CreateBranch",
    "CreateDatabase",
    "CreateTable",
    "CreateTag",
    "CreateView",
    "DatasetId",
    "DatasetsUnified",
    "DecodeError",
    "DropBranch",
    "DropDatabase",
    "DropTable",
    "DropTag",
    "DropView",
    "EncodeError",
    "Event",
    "EventFamily",
    "EventId",
    "Format",
    "Gap",
    "Heartbeat",
    "Input",
    "JobLineage",
    "JobName",
    "JobStarted",
    "JobStatusChanged",
    "LineageDeleted",
    "MainReplaced",
    "Output",
    "StatementFailed",
    "Table",
    "TableName",
    "Truncate",
    "UnknownEvent",
    "decode",
    "encode",
    "redact",
]
