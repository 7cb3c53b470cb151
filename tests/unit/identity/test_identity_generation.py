"""Which generation of a table, by what its format tells."""

from __future__ import annotations

from uuid import UUID

import pytest

from headwater.events.identity import IdentityError, generation_of, paimon_generation

U = "9c12d441-03fe-4693-9a96-a0705ddf69c1"


@pytest.mark.parametrize(
    ("table_format", "facts", "event", "generation"),
    [
        ("iceberg", {"table-uuid": U}, None, UUID(U)),
        ("ICEBERG", {"Table-UUID": U.upper()}, "p/1", UUID(U)),
        ("iceberg", {}, "p/1", "p/1"),
        ("delta", {"metaData.id": U}, None, UUID(U)),
        ("delta", {"metaData.id": "testId"}, None, "testId"),
        ("delta", {"table-uuid": U}, "p/1", "p/1"),
        ("paimon", {"schema-0.timeMillis": "1700000000123"}, None, "1700000000123"),
        ("paimon", {"schema-0.timeMillis": "01700000000123"}, None, "1700000000123"),
        ("paimon", {}, None, None),
        ("hudi", {"table-uuid": U}, "p/1", "p/1"),
        ("parquet", {}, "p/1", "p/1"),
        ("parquet", {}, None, None),
    ],
)
def test_generation(table_format: str, facts: dict[str, str], event: str | None, generation: UUID | str | None) -> None:
    assert generation_of(table_format, facts, event) == generation


@pytest.mark.parametrize(
    ("table_format", "facts", "event"),
    [
        ("iceberg", {"table-uuid": "x"}, "p/1"),
        ("iceberg", {"table-uuid": U.replace("-", "")}, "p/1"),
        ("paimon", {"schema-0.timeMillis": "yesterday"}, "p/1"),
        ("paimon", {"schema-0.timeMillis": "0"}, "p/1"),
        ("paimon", {"schema-0.timeMillis": "-5"}, "p/1"),
        ("parquet", {}, ""),
    ],
)
def test_a_malformed_fact_is_never_passed_over(table_format: str, facts: dict[str, str], event: str) -> None:
    with pytest.raises(IdentityError):
        generation_of(table_format, facts, event)


def test_a_number_is_as_good_as_its_text() -> None:
    assert paimon_generation(1700000000123) == paimon_generation("1700000000123")
