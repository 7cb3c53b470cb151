"""PostgreSQL's function that decides which catalog the PIP-5 views show. It is a function because a view can't raise
errors.

`sql.pip5_catalog` has the same rules for the other databases.
"""

from __future__ import annotations

from typing import Final

SETTING: Final = "headwater.catalog"
NAMES: Final = "pip5_catalog"
SEVERAL: Final = ""
"""Recorded where several catalogs have their views in one database: the setting has to say which one is meant."""


def postgresql_function(schema: str) -> str:
    """Return the function's definition. It raises an error if it is unclear which catalog is meant. Readers of the
    views need no rights on the tables."""
    return f"""
CREATE OR REPLACE FUNCTION {NAMES}(views text) RETURNS TABLE (name text, catalog_id bytea, prefix text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = {schema}, pg_temp ROWS 1 AS $body$
#variable_conflict use_column
DECLARE
    told text := nullif(current_setting('{SETTING}', true), '');
    asked text := coalesce(told, (SELECT d.catalog FROM pip5_databases d WHERE d.name = views));
    known bigint := (SELECT count(*) FROM catalogs);
    meant bytea[];
BEGIN
    IF asked IS NULL THEN
        meant := (SELECT array_agg(k.id) FROM catalogs k);
    ELSE
        meant := (SELECT array_agg(k.id) FROM catalogs k WHERE k.type || ':' || k.location = asked
            OR EXISTS (SELECT FROM catalog_names n WHERE n.name = asked AND n.catalog_id = k.id));
    END IF;
    IF asked IS NULL AND known > 1 OR asked = '{SEVERAL}' THEN
        RAISE EXCEPTION 'several catalogs have their lineage here: say which by the setting {SETTING}, one of: %',
            (SELECT string_agg(DISTINCT n.name, ', ' ORDER BY n.name) FROM catalog_names n)
            USING ERRCODE = 'invalid_parameter_value',
            HINT = 'SET {SETTING} = ''...'', or ?options=-c%20{SETTING}=... in a JDBC URL.';
    ELSIF cardinality(meant) > 1 THEN
        RAISE EXCEPTION '% stands for several catalogs: set {SETTING} to the identity of one of: %', asked,
            (SELECT string_agg(k.type || ':' || k.location, ', ' ORDER BY k.type, k.location)
                FROM catalogs k WHERE k.id = ANY (meant))
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF told IS NOT NULL AND meant IS NULL AND NOT EXISTS (SELECT FROM table_lineage l WHERE l.catalog = told) THEN
        RAISE EXCEPTION 'no catalog % is known here ({SETTING}); there is: %', told,
            coalesce((SELECT string_agg(DISTINCT n.name, ', ' ORDER BY n.name) FROM catalog_names n), 'none yet')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY SELECT n.name, n.catalog_id, CASE WHEN EXISTS (
            SELECT FROM catalog_names o WHERE o.name = n.name AND o.catalog_id <> n.catalog_id
        ) THEN k.location || CASE k.type WHEN 'jdbc' THEN '.' ELSE '/' END END
        FROM catalog_names n JOIN catalogs k ON k.id = n.catalog_id WHERE k.id = ANY (meant);
    IF known <= 1 THEN
        RETURN QUERY SELECT '', NULL::bytea, NULL::text;
    END IF;
    IF meant IS NULL THEN
        RETURN QUERY SELECT asked, NULL::bytea, NULL::text;
    END IF;
END
$body$"""  # noqa: S608 - of nothing but names that are written here
