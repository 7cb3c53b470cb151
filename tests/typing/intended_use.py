"""How a user's program is meant to look to a type checker; checked in the tree and against the installed wheel.

Every line here must pass mypy --strict and basedpyright; tests/packaging/wrong_use.txt is what both must refuse.
"""

from __future__ import annotations

from typing_extensions import assert_type

from headwater.cli import main
from headwater.cli.output import JsonOutput, Output, TextOutput
from headwater.errors import ConfigurationError, HeadwaterError, TransientError
from headwater.events.names import DatasetId, JobName, TableName


def retry_by_type(error: HeadwaterError) -> bool:
    return isinstance(error, TransientError)


def names_are_texts() -> None:
    orders = DatasetId(namespace="s3://lake", name="warehouse/orders")
    assert_type(orders.namespace, str)
    assert_type(JobName(name="orders_etl").name, str)
    assert_type(str(TableName(catalog="ice", database="db", table="orders")), str)


def outputs_are_exchangeable() -> None:
    outputs: list[Output] = [TextOutput(), JsonOutput()]
    for output in outputs:
        output.record("job", {"name": "orders_etl"})


def commands_end_in_a_code() -> None:
    assert_type(main(["--version"]), int)
    assert_type(retry_by_type(ConfigurationError("no such key")), bool)
