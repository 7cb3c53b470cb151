"""Rights on PostgreSQL's tables, copied from one schema to another, and what depends on tables that are replaced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlalchemy import Connection, text

_SCHEMA: Final = """
SELECT a.grantee, a.privilege_type, a.is_grantable
FROM pg_namespace n, aclexplode(n.nspacl) a WHERE n.nspname = :schema AND a.grantee <> n.nspowner
"""
_RELATIONS: Final = """
SELECT c.relname, a.grantee, a.privilege_type, a.is_grantable
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, aclexplode(c.relacl) a
WHERE n.nspname = :schema AND c.relkind IN ('r', 'p') AND a.grantee <> c.relowner
"""
_COLUMNS: Final = """
SELECT c.relname, t.attname, a.grantee, a.privilege_type, a.is_grantable
FROM pg_attribute t JOIN pg_class c ON c.oid = t.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace,
  aclexplode(t.attacl) a
WHERE n.nspname = :schema AND c.relkind IN ('r', 'p') AND a.grantee <> c.relowner
"""
_DEFAULTS: Final = """
SELECT d.defaclrole, d.defaclobjtype, a.grantee, a.privilege_type, a.is_grantable
FROM pg_default_acl d JOIN pg_namespace n ON n.oid = d.defaclnamespace, aclexplode(d.defaclacl) a
WHERE n.nspname = :schema AND a.grantee <> d.defaclrole
"""
_KINDS: Final = {"r": "TABLES", "S": "SEQUENCES", "f": "FUNCTIONS", "T": "TYPES"}
_NAMES: Final = """
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = :schema AND c.relkind IN ('r', 'p')
"""
_OWNERS: Final = """
SELECT c.relname, pg_get_userbyid(o.relowner) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_class o ON o.relname = c.relname JOIN pg_namespace m ON m.oid = o.relnamespace
WHERE n.nspname = :fresh AND m.nspname = :live AND c.relkind IN ('r', 'p') AND o.relowner <> c.relowner
"""
_SCHEMA_OWNER: Final = """
SELECT pg_get_userbyid(l.nspowner) FROM pg_namespace l, pg_namespace f
WHERE l.nspname = :live AND f.nspname = :fresh AND l.nspowner <> f.nspowner
"""
_VIEWS: Final = """
SELECT DISTINCT 'view ' || vn.nspname || '.' || v.relname
FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid AND d.classid = 'pg_rewrite'::regclass
  JOIN pg_class v ON v.oid = r.ev_class JOIN pg_namespace vn ON vn.oid = v.relnamespace
  JOIN pg_class t ON t.oid = d.refobjid AND d.refclassid = 'pg_class'::regclass
  JOIN pg_namespace tn ON tn.oid = t.relnamespace
WHERE tn.nspname = :schema AND v.oid <> t.oid AND vn.nspname NOT IN (SELECT name FROM {schema}.pip5_databases)
"""
_OTHERS: Final = """
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
    """Give the fresh schema and its tables the owners and rights of the live ones, in the caller's transaction."""
    for statement in list(_statements(connection, live, fresh)):
        connection.execute(text(statement))


def find_followers(connection: Connection, schema: str, _: str) -> list[str]:
    """Return what belongs to the tables of a schema and isn't ours. It would go on with the tables that it knows."""
    views = connection.execute(text(_VIEWS.format(schema=schema)), {"schema": schema}).scalars()
    return [*views, *connection.execute(text(_OTHERS), {"schema": schema}).scalars()]


def _statements(connection: Connection, live: str, fresh: str) -> Iterator[str]:
    quoted = connection.dialect.identifier_preparer.quote_identifier
    ask = {"schema": live}
    roles = _Roles(connection)
    there = {*connection.execute(text(_NAMES), {"schema": fresh}).scalars()}
    for grantee, privilege, option in connection.execute(text(_SCHEMA), ask):
        yield f"GRANT {privilege} ON SCHEMA {fresh} TO {roles.grantee(grantee, option)}"
    for name, grantee, privilege, option in connection.execute(text(_RELATIONS), ask):
        if name in there:
            yield f"GRANT {privilege} ON {fresh}.{quoted(name)} TO {roles.grantee(grantee, option)}"
    for name, column, grantee, privilege, option in connection.execute(text(_COLUMNS), ask):
        if name in there:
            what = f"{privilege} ({quoted(column)}) ON {fresh}.{quoted(name)}"
            yield f"GRANT {what} TO {roles.grantee(grantee, option)}"
    for role, kind, grantee, privilege, option in connection.execute(text(_DEFAULTS), ask):
        made = f"ALTER DEFAULT PRIVILEGES FOR ROLE {roles.name(role)} IN SCHEMA {fresh}"
        yield f"{made} GRANT {privilege} ON {_KINDS[_letter(kind)]} TO {roles.grantee(grantee, option)}"
    yield from _owner_statements(connection, live, fresh)


def _owner_statements(connection: Connection, live: str, fresh: str) -> Iterator[str]:
    quoted = connection.dialect.identifier_preparer.quote_identifier
    both = {"live": live, "fresh": fresh}
    for name, owner in connection.execute(text(_OWNERS), both):
        yield f"ALTER TABLE {fresh}.{quoted(name)} OWNER TO {quoted(owner)}"
    for owner in connection.execute(text(_SCHEMA_OWNER), both).scalars():
        yield f"ALTER SCHEMA {fresh} OWNER TO {quoted(owner)}"


def _letter(kind: str | bytes) -> str:
    return kind.decode() if isinstance(kind, bytes) else kind


class _Roles:
    """The names of roles by their numbers."""

    def __init__(self, connection: Connection) -> None:
        self._quoted = connection.dialect.identifier_preparer.quote_identifier
        self._names: dict[int, str] = {
            row.oid: row.rolname for row in connection.execute(text("SELECT oid, rolname FROM pg_roles"))
        }

    def name(self, number: int) -> str:
        return self._quoted(self._names[number])

    def grantee(self, number: int, may_grant: bool) -> str:
        """Return whom a right is given; 0 is everybody."""
        name = "PUBLIC" if number == 0 else self.name(number)
        return f"{name} WITH GRANT OPTION" if may_grant else name
