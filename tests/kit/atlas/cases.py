"""What Atlas is told of an event, case by case, for a reviewer to read: an event, the changes that it means, and the
notifications that go to Atlas's topic.

    python -m tests.kit.atlas.cases

writes the files anew. Read what changed before it is committed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from headwater.events import Event
from headwater.events.catalog import AlterTable, AlterView
from headwater.events.changes import RenameColumn
from headwater.events.jobs import JobLineage, SinkSchema, SourceSchema
from headwater.events.names import DatasetId, TableName
from headwater.events.scalars import Format
from headwater.events.tables import Table
from headwater.forwarders.atlas.entities import readable_change
from headwater.forwarders.atlas.forwarder import atlas_changes
from headwater.forwarders.atlas.messages import notifications
from headwater.forwarders.atlas.options import AtlasNames
from tests.kit.forwarders import datahub_cases
from tests.kit.forwarders.datahub_cases import AMOUNT, ETL, ID, STEP, TOTALS, in_lake, stamped

FOLDER: Final = Path(__file__).parents[2] / "golden/forwarders/atlas"
_MORE: Final[dict[str, Event]] = {
    "column_renamed": AlterTable(
        **in_lake("orders"),
        changes=(RenameColumn(path=("amount",), new_name="price"),),
        new_table=Table(columns=(ID, AMOUNT.model_copy(update={"name": "price"}))),
    ),
    "view_renamed": AlterView(
        **{**in_lake("totals"), "dataset": None, "format": Format.VIEW},
        view=TOTALS,
        renamed_to=TableName(catalog="lake", database="sales", table="sums"),
    ),
    "lineage_of_hive_hdfs_and_kafka": JobLineage(
        job=STEP,
        parent_job=ETL,
        fingerprint=bytes(16),
        inputs=(
            SourceSchema(
                dataset=DatasetId(namespace="hdfs://namenode:8020", name="/warehouse/sales.db/orders"),
                table=TableName(catalog="spark_catalog", database="Sales", table="Orders"),
                format=Format.PARQUET,
                columns=(ID,),
            ),
            SourceSchema(
                dataset=DatasetId(namespace="hdfs://namenode:8020", name="/landing/orders"),
                format=Format.JSON,
                columns=(ID,),
            ),
            SourceSchema(
                dataset=DatasetId(namespace="s3://lake", name="landing/orders"), format=Format.CSV, columns=(ID,)
            ),
        ),
        outputs=(SinkSchema(dataset=DatasetId(namespace="kafka://broker:9092", name="orders"), format=Format.KAFKA),),
    ),
}
CASES: Final[dict[str, Event]] = {
    **datahub_cases.CASES,
    **{
        name: stamped(draft, number) for number, (name, draft) in enumerate(_MORE.items(), len(datahub_cases.CASES) + 1)
    },
}


def content(event: Event, names: AtlasNames | None = None) -> dict[str, Any]:
    """What the file of a case holds."""
    changes = atlas_changes(event, names or AtlasNames())
    return {
        "event": json.loads(event.to_json()),
        "changes": [readable_change(each) for each in changes],
        "notifications": list(notifications(changes)),
    }


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, event in CASES.items():
        text = json.dumps(content(event), indent=1, ensure_ascii=False) + "\n"
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
