"""Rights on PostgreSQL's tables, copied from one schema to another, and what depends on tables that are replaced."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, text

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
