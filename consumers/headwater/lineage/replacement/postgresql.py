"""The switch-over on PostgreSQL: two schemas are renamed in one transaction.

Writers wait at a lock on their tables. When the transaction ends, PostgreSQL looks the names of their statements up
again, and they go on in the fresh tables. There the marks of their connections are missing, so they read the bus from
the offsets of those tables (`bulk.marks`). Readers wait only for the views.

Rights on PostgreSQL's tables, copied from one schema to another, and what depends on tables that are replaced.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Connection, select, text, update

from headwater.lineage.replacement.areas import AreaNames
from headwater.lineage.replacement.arrivals import MissingEvents, find_missing_events, take_over
from headwater.lineage.replacement.state import LOCK_SECONDS, drop_state
from headwater.lineage.rows import KINDS
from headwater.lineage.sql.errors import translate_errors
from headwater.lineage.sql.pip5_catalog import NAMES, PIP5_DATABASES
from headwater.lineage.sql.pip5_views import create_views
from headwater.lineage.sql.writer_tables import (
    DEAD_LETTERS,
    DECISION_TABLES,
    EPOCHS,
    INGESTS,
    INSTANTS,
    MARKS,
    OFFSETS,
)
from headwater.lineage.store import StoreOptions
from headwater.lineage.store.engines import open_engine

_TO: Final = """
  || ' TO ' || CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
  || CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END
"""
_COPIED: Final = f"""
WITH live AS (SELECT * FROM pg_namespace WHERE nspname = :live),
  fresh AS (SELECT * FROM pg_namespace WHERE nspname = :fresh),
  tables AS (SELECT l.oid, l.relacl, l.relowner, format('%I.%I', fresh.nspname, l.relname) AS name,
      f.relowner AS owner
    FROM pg_class l JOIN live ON l.relnamespace = live.oid
      JOIN pg_class f ON f.relname = l.relname JOIN fresh ON f.relnamespace = fresh.oid
    WHERE l.relkind IN ('r', 'p') AND f.relkind IN ('r', 'p'))
SELECT format('GRANT %s ON SCHEMA %I', a.privilege_type, fresh.nspname) {_TO}
FROM fresh, live n, aclexplode(n.nspacl) a WHERE a.grantee <> n.nspowner
UNION ALL
SELECT format('GRANT %s ON %s', a.privilege_type, t.name) {_TO}
FROM tables t, aclexplode(t.relacl) a WHERE a.grantee <> t.relowner
UNION ALL
SELECT format('GRANT %s (%I) ON %s', a.privilege_type, c.attname, t.name) {_TO}
FROM tables t JOIN pg_attribute c ON c.attrelid = t.oid, aclexplode(c.attacl) a WHERE a.grantee <> t.relowner
UNION ALL
SELECT format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA %I GRANT %s ON %s', pg_get_userbyid(d.defaclrole),
  fresh.nspname, a.privilege_type, CASE d.defaclobjtype WHEN 'r' THEN 'TABLES' WHEN 'S' THEN 'SEQUENCES'
    WHEN 'f' THEN 'FUNCTIONS' ELSE 'TYPES' END) {_TO}
FROM fresh, live n JOIN pg_default_acl d ON d.defaclnamespace = n.oid, aclexplode(d.defaclacl) a
WHERE a.grantee <> d.defaclrole
UNION ALL
SELECT format('ALTER TABLE %s OWNER TO %I', t.name, pg_get_userbyid(t.relowner))
FROM tables t WHERE t.owner <> t.relowner
UNION ALL
SELECT format('ALTER SCHEMA %I OWNER TO %I', fresh.nspname, pg_get_userbyid(live.nspowner))
FROM live, fresh WHERE live.nspowner <> fresh.nspowner
"""  # noqa: S608 - a text of ours
"""The statements that give the fresh schema and its tables what the live ones have."""
_FOLLOWERS: Final = """
SELECT DISTINCT 'view ' || vn.nspname || '.' || v.relname
FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid AND d.classid = 'pg_rewrite'::regclass
  JOIN pg_class v ON v.oid = r.ev_class JOIN pg_namespace vn ON vn.oid = v.relnamespace
  JOIN pg_class t ON t.oid = d.refobjid AND d.refclassid = 'pg_class'::regclass
  JOIN pg_namespace tn ON tn.oid = t.relnamespace
WHERE tn.nspname = :schema AND v.oid <> t.oid AND vn.nspname NOT IN (SELECT name FROM {schema}.pip5_databases)
UNION ALL
SELECT 'trigger ' || g.tgname || ' of ' || c.relname FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = :schema AND NOT g.tgisinternal
UNION ALL
SELECT 'policy ' || p.polname || ' of ' || c.relname FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = :schema
UNION ALL
SELECT 'publication ' || pubname || ' of ' || tablename FROM pg_publication_tables p
WHERE schemaname = :schema AND NOT (SELECT puballtables FROM pg_publication q WHERE q.pubname = p.pubname)
UNION ALL
SELECT 'foreign key ' || k.conname || ' of ' || k.conrelid::regclass FROM pg_constraint k
  JOIN pg_class c ON c.oid = k.confrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = :schema AND k.contype = 'f'
"""


def copy_privileges(connection: Connection, live: str, fresh: str) -> None:
    """Give the fresh schema and its tables the owners and rights of the live ones, in the caller's transaction.
    Owners come last: who isn't the owner any more may grant nothing."""
    statements: list[str] = [*connection.execute(text(_COPIED), {"live": live, "fresh": fresh}).scalars()]
    for statement in sorted(statements, key=lambda each: " OWNER TO " in each):
        connection.exec_driver_sql(statement, execution_options={"no_parameters": True})


def find_followers(connection: Connection, schema: str) -> list[str]:
    """Return what belongs to the tables of a schema and isn't ours. It would go on with the tables that it knows."""
    return [*connection.execute(text(_FOLLOWERS.format(schema=schema)), {"schema": schema}).scalars()]


_ORDER: Final = (
    MARKS.name,
    EPOCHS.name,
    *(kind.name for kind in KINDS),
    *(table.name for table in (DEAD_LETTERS, INGESTS, OFFSETS, INSTANTS, *DECISION_TABLES)),
)
"""The order in which a writer's transaction comes to its tables, so that none waits for another in a circle."""
_GRACE_SECONDS: Final = 60


class PostgresSwitchOver:
    def __init__(self, options: StoreOptions) -> None:
        self._target = options.target
        self._names = AreaNames.of(options)

    def recover(self) -> None:
        """Do nothing: a transaction that was interrupted left nothing."""

    def followers(self) -> Sequence[str]:
        with self._connection() as connection:
            return find_followers(connection, self._names.live)

    @contextmanager
    def fence(self, seconds: float) -> Generator[PostgresFence]:
        with self._connection() as connection:
            connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'"))
            idle = int(seconds) + _GRACE_SECONDS
            connection.execute(text(f"SET LOCAL idle_in_transaction_session_timeout = '{idle}s'"))
            tables = ", ".join(f"{self._names.live}.{name}" for name in _ORDER)
            connection.execute(text(f"LOCK TABLE {tables} IN EXCLUSIVE MODE"))
            yield PostgresFence(connection, self._names, self._target.database)

    @contextmanager
    def _connection(self) -> Generator[Connection]:
        """Open a connection that commits nothing by itself."""
        target = self._target
        with open_engine(target) as engine, translate_errors(target.words), engine.connect() as connection:
            yield connection


class PostgresFence:
    """The transaction that has the locks."""

    def __init__(self, connection: Connection, names: AreaNames, views: str) -> None:
        self._connection = connection
        self._live, self._fresh, self._former = names
        self._views = views

    def missing_events(self) -> list[MissingEvents]:
        return find_missing_events(self._connection, self._live, self._fresh)

    def switch(self) -> None:
        run = self._connection
        has_views = PIP5_DATABASES.c.name == self._views
        is_shown = run.execute(select(PIP5_DATABASES.c.definition).where(has_views)).scalar() is not None
        take_over(run, self._live, self._fresh)
        copy_privileges(run, self._live, self._fresh)
        drop_state(run, self._fresh)
        run.execute(text(f"ALTER SCHEMA {self._live} RENAME TO {self._former}"))
        run.execute(text(f"ALTER SCHEMA {self._fresh} RENAME TO {self._live}"))
        if is_shown:
            self._move_views()
        run.commit()

    def _move_views(self) -> None:
        """Make the views anew over the tables that have the names now; rights on the views stay."""
        run = self._connection
        run.execute(update(PIP5_DATABASES).values(definition=None))
        moved = f"ALTER FUNCTION {self._former}.{NAMES}(text) SET search_path = {self._former}, pg_temp"
        names = [row.name for row in run.execute(select(PIP5_DATABASES.c.name))]
        run.execute(text(moved))
        for name in names:
            create_views(run, name)
