"""The roles of deploy/ on real servers: what each may, and above all what it may not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import SecretStr
from sqlalchemy import URL, Engine, create_engine, make_url, text
from sqlalchemy.exc import DBAPIError

from headwater.lineage.maintenance.partitions import make_partitions
from headwater.lineage.sql.errors import StoreRightsError, error_class_of
from headwater.lineage.store import StoreOptions, open_store
from headwater.lineage.store.status import read_status, size_of
from headwater.local import Service
from tests.kit.lineage.later_release import later_in
from tests.kit.lineage.reported_store import REPORTED, digest, digest_in_memory, rows_of
from tests.kit.stores import own_database

pytestmark = [pytest.mark.slow, pytest.mark.database]
SQL = Path(__file__).parents[2] / "deploy/store"
VIEWS = (
    "catalog_options",
    "source_job_lineage",
    "sink_job_lineage",
    "source_snapshot_lineage",
    "sink_snapshot_lineage",
)


@dataclass
class Deployed:
    """A store that an owner made, and users of each role."""

    owner: URL
    views: str
    users: dict[str, URL]

    def options(self, who: str) -> StoreOptions:
        url = self.users[who].render_as_string(hide_password=False)
        return StoreOptions(jdbc_url=SecretStr(url), jdbc_database=self.views)

    @property
    def base(self) -> str:
        return "headwater" if self.owner.drivername.startswith("postgresql") else str(self.owner.database)


@pytest.fixture(params=["postgres", "mariadb"], scope="module")
def deployed(request: pytest.FixtureRequest) -> Iterator[Deployed]:
    service: Service = request.getfixturevalue(request.param)
    with own_database(service) as text_of_it:
        owner = make_url(text_of_it)
        views = "paimon" if request.param == "postgres" else f"views{uuid4().hex[:8]}"
        options = StoreOptions(jdbc_url=SecretStr(text_of_it), jdbc_database=views)
        with open_store(options) as store:
            store.merge(rows_of(REPORTED))
        root = create_engine(owner, isolation_level="AUTOCOMMIT")
        run_script(root, SQL / f"{'postgresql' if request.param == 'postgres' else 'mariadb'}.sql", views)
        users = {role: made(root, owner, role) for role in ("writer", "asker", "reader")}
        if request.param == "mariadb":
            users["reader"] = users["reader"].set(database=views)
        yield Deployed(owner, views, users)
        with root.connect() as connection:
            for url in users.values():
                for each in gone(root, str(url.username)):
                    connection.execute(text(each))
            if request.param == "mariadb":
                connection.execute(text(f"DROP DATABASE {views}"))
        root.dispose()


def run_script(root: Engine, script: Path, views: str) -> None:
    """As it stands, but for the names that it says are to be put in."""
    content = re.sub(r"--.*", "", script.read_text())
    with root.connect() as connection:
        if root.dialect.name == "postgresql":
            for _ in range(2):
                connection.exec_driver_sql(content, execution_options={"no_parameters": True})
            return
        content = content.replace("`lineage`", f"`{root.url.database}`").replace("`paimon`", f"`{views}`")
        for statement in filter(str.strip, content.split(";")):
            connection.exec_driver_sql(statement)


def made(root: Engine, owner: URL, role: str) -> URL:
    name = f"{role}{uuid4().hex[:8]}"
    who, group = f"{name}@'127.0.0.1'", f"headwater_{role}"
    if root.dialect.name == "postgresql":
        statements = [f"CREATE ROLE {name} LOGIN PASSWORD 'pw'", f"GRANT {group} TO {name}"]
    else:
        statements = [
            f"CREATE USER {who} IDENTIFIED BY 'pw'",
            f"GRANT {group} TO {who}",
            f"SET DEFAULT ROLE {group} FOR {who}",
        ]
    with root.connect() as connection:
        for each in statements:
            connection.execute(text(each))
    return owner.set(username=name, password="pw")


def gone(root: Engine, name: str) -> list[str]:
    return [f"DROP ROLE {name}"] if root.dialect.name == "postgresql" else [f"DROP USER {name}@'127.0.0.1'"]


def refused(url: URL, statement: str) -> bool:
    """Whether it is, for want of a right; or because a view is none that takes rows."""
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            connection.execute(text(statement))
    except DBAPIError as e:
        words = str(e.orig)
        return (
            error_class_of(e) is StoreRightsError
            or "must be owner" in words
            or "not updatable" in words
            or re.match(r"cannot \w+( \w+)? view", words) is not None
        )
    finally:
        engine.dispose()
    return False


def test_the_writer_opens_and_writes(deployed: Deployed) -> None:
    with open_store(deployed.options("writer")) as store:
        store.merge(rows_of(REPORTED))
        assert digest(store) == digest_in_memory(REPORTED)


def test_the_writer_is_told_who_has_to_migrate(deployed: Deployed, tmp_path: Path) -> None:
    """Nothing is changed by its trying."""
    with pytest.raises(
        StoreRightsError, match="somebody who may change its tables has to run `headwater store migrate"
    ):
        open_store(deployed.options("writer"), history=later_in(tmp_path))
    with open_store(deployed.options("writer"), create=False) as store:
        assert digest(store) == digest_in_memory(REPORTED)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE {base}.jobs",
        "ALTER TABLE {base}.jobs ADD COLUMN more INTEGER",
        "CREATE TABLE {base}.mine (a INTEGER)",
        "TRUNCATE TABLE {base}.jobs",
        "CREATE INDEX mine ON {base}.jobs (first)",
        "DROP VIEW {views}.sink_job_lineage",
    ],
)
def test_the_writer_changes_no_table(deployed: Deployed, statement: str) -> None:
    assert refused(deployed.users["writer"], statement.format(base=deployed.base, views=deployed.views))


def test_the_asker_asks_and_writes_nothing(deployed: Deployed) -> None:
    with open_store(deployed.options("asker"), readonly=True) as store:
        assert digest(store) == digest_in_memory(REPORTED)
        with store.engine.connect() as connection:
            size = size_of(connection)
        assert size.rows > len({row.id for row in rows_of(REPORTED)})
        assert all(each.bytes for each in size.tables), "each has its pages and its indexes"
        assert (size.bytes or 0) > 100_000
    assert read_status(deployed.options("asker")).has_views
    for statement in ("DELETE FROM {base}.jobs", "UPDATE {base}.jobs SET last = 0", "DROP TABLE {base}.jobs"):
        assert refused(deployed.users["asker"], statement.format(base=deployed.base))


def test_the_reader_reads_the_views(deployed: Deployed) -> None:
    engine = create_engine(deployed.users["reader"])
    with engine.connect() as connection:
        for view in VIEWS:
            found = connection.execute(text(f"SELECT * FROM {deployed.views}.{view} WHERE 1 = 0"))
            columns = set(found.keys())
            assert columns >= {"key" if view == "catalog_options" else "job"}
    engine.dispose()


@pytest.mark.sample(6)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM {view}",
        "UPDATE {view} SET {column} = {column}",
        "DROP VIEW {view}",
        "ALTER VIEW {view} AS SELECT 1",
        "ALTER TABLE {view} RENAME TO other",
    ],
)
def test_the_reader_changes_nothing(deployed: Deployed, view: str, statement: str) -> None:
    is_postgres = deployed.base == "headwater"
    if statement.startswith("ALTER VIEW") and is_postgres:
        statement = "ALTER VIEW {view} OWNER TO CURRENT_USER"
    column = "value" if view == "catalog_options" else "job"
    quoted = f'"{column}"' if is_postgres else f"`{column}`"
    assert refused(deployed.users["reader"], statement.format(view=f"{deployed.views}.{view}", column=quoted))


def test_the_reader_sees_no_table(deployed: Deployed) -> None:
    assert refused(deployed.users["reader"], f"SELECT * FROM {deployed.base}.jobs")


def test_partitions_to_come_are_the_writer_s_too(deployed: Deployed) -> None:
    """Their owner makes them; a writer that may not goes on with the rest."""
    if deployed.base != "headwater":
        return
    with open_store(deployed.options("writer")) as store, pytest.raises(StoreRightsError):
        make_partitions(store.engine, ahead=7)
    with open_store(deployed.owner.render_as_string(hide_password=False)) as store:
        assert len(make_partitions(store.engine, ahead=7)) >= 4
    with open_store(deployed.options("writer")) as store:
        store.merge(rows_of(REPORTED))
        assert digest(store) == digest_in_memory(REPORTED)
