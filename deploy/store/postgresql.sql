-- Roles of a lineage store on PostgreSQL. Run it in the store's database, as the user who made the store, after
--
--     headwater store init --store postgresql://owner@host/lineage
--
--     psql -v ON_ERROR_STOP=1 -f deploy/store/postgresql.sql postgresql://owner@host/lineage
--
-- and then give a user one of the roles: GRANT headwater_writer TO …. Running it again does no harm. Another name of
-- jdbc.database than paimon is to be put in its place below.
--
--   headwater_writer  drivers and the writer: rows come, change and go; no table is made, altered or dropped
--   headwater_asker   `headwater lineage` and the Python API: reads the store's own tables
--   headwater_reader  whoever asks by SQL: reads the views in paimon, and nothing else
--
-- Tables of later versions and partitions of later months are covered: those that the user makes who runs this.
-- A role that makes none of them leaves `headwater store migrate` and `headwater store maintain` to that user.

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['headwater_writer', 'headwater_asker', 'headwater_reader'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
      EXECUTE format('CREATE ROLE %I NOLOGIN', name);
    END IF;
  END LOOP;
  -- Rows are merged out of temporary tables.
  EXECUTE format('GRANT CONNECT, TEMPORARY ON DATABASE %I TO headwater_writer', current_database());
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO headwater_asker, headwater_reader', current_database());
END
$$;

GRANT USAGE ON SCHEMA headwater TO headwater_writer, headwater_asker;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA headwater TO headwater_writer;
GRANT SELECT ON ALL TABLES IN SCHEMA headwater TO headwater_asker;
ALTER DEFAULT PRIVILEGES IN SCHEMA headwater GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO headwater_writer;
ALTER DEFAULT PRIVILEGES IN SCHEMA headwater GRANT SELECT ON TABLES TO headwater_asker;

-- Which version the tables have is for who migrates to say.
REVOKE INSERT, UPDATE, DELETE ON headwater.schema_version FROM headwater_writer;

GRANT USAGE ON SCHEMA paimon TO headwater_reader, headwater_asker;
GRANT SELECT ON ALL TABLES IN SCHEMA paimon TO headwater_reader, headwater_asker;
ALTER DEFAULT PRIVILEGES IN SCHEMA paimon GRANT SELECT ON TABLES TO headwater_reader, headwater_asker;
