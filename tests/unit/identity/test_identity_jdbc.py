"""JDBC urls and tables by the table of truth."""

from __future__ import annotations

import pytest

from headwater.events.identity import IdentityError, JdbcTable, Unknown, jdbc_database, jdbc_identifier, jdbc_table
from tests.kit.identity_rows import SITE, Row, check, names, options, rows

ROWS = rows("jdbc")


@pytest.mark.parametrize("row", ROWS, ids=names(ROWS))
def test_table(row: Row) -> None:
    url, dbtable, *more = row.given

    def identify() -> Unknown | str:
        found = jdbc_table(url, dbtable, SITE, options(more[0]) if more else {})
        return found if isinstance(found, Unknown) else written(found)

    check(row, identify)


def written(found: JdbcTable) -> str:
    assumed = f" ~ {', '.join(found.assumed)}" if found.assumed else ""
    return f"{found.dataset.namespace} | {found.dataset.name}{assumed}"


def test_only_a_query_is_marked_as_one() -> None:
    query = jdbc_table("jdbc:postgresql://h/db", "(select 1) q", SITE)
    nowhere = jdbc_table("jdbc:h2:mem:x", "t", SITE)
    assert isinstance(query, Unknown)
    assert query.query
    assert isinstance(nowhere, Unknown)
    assert not nowhere.query


@pytest.mark.parametrize(
    ("url", "parts", "truth"),
    [
        ("jdbc:postgresql://h/db", ["public", "Orders"], "postgres://h:5432 | db.public.Orders"),
        ("jdbc:postgresql://h/db", ["a.b", "t"], "postgres://h:5432 | db.`a.b`.t"),
        ("jdbc:mysql://h", ["db", "Orders"], "mysql://h:3306 | db.Orders"),
        ("jdbc:oracle:thin:@//h/svc", ["hr", "emp"], "oracle://h:1521 | SVC.hr.emp"),
        ("jdbc:trino://h:8080/hive", ["Sales", "T"], "trino://h:8080 | hive.sales.t"),
        ("jdbc:postgresql://h/db", ["t"], "postgres://h:5432 | db.public.t ~ schema public"),
    ],
)
def test_a_jdbc_catalog_quotes_every_part(url: str, parts: list[str], truth: str) -> None:
    found = jdbc_identifier(url, parts, SITE)
    assert isinstance(found, JdbcTable)
    assert written(found) == truth


def test_a_jdbc_catalog_never_names_an_empty_part() -> None:
    with pytest.raises(IdentityError, match="a part of the table's name"):
        jdbc_identifier("jdbc:mysql://h", ["db", ""], SITE)


def test_a_jdbc_catalog_in_memory_is_unknown() -> None:
    assert isinstance(jdbc_identifier("jdbc:h2:mem:x", ["PUBLIC", "T"], SITE), Unknown)


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("jdbc:postgresql://h/db", "postgres://h:5432/db"),
        ("jdbc:mysql://h/db", "mysql://h:3306"),
        ("jdbc:derby:/srv/m", "derby://driver-1/srv/m"),
    ],
)
def test_a_connection_stays_in_its_database_or_not(url: str, location: str) -> None:
    found = jdbc_database(url, SITE)
    assert not isinstance(found, Unknown)
    assert found.location == location
