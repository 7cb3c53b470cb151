-- Roles of a lineage store on MariaDB, or MySQL from 8.0 on. Run it as an administrator after
--
--     headwater store init --store mariadb://owner@host/lineage
--
--     mariadb < deploy/store/mariadb.sql
--
-- and then give a user one of the roles: GRANT headwater_writer TO …; SET DEFAULT ROLE headwater_writer FOR … (on MySQL:
-- TO …). Running it again does no harm. `lineage` is the store's database, and `paimon` is jdbc.database: put yours in
-- their place.
--
--   headwater_writer  drivers and the writer: rows come, change and go; no table is made, altered or dropped
--   headwater_asker   `headwater lineage` and the Python API: reads the store's own tables
--   headwater_reader  whoever asks by SQL: reads the views in paimon, and nothing else
--
-- Grants on a database cover its tables to come. Views read for their reader with the rights of who made them.

CREATE ROLE IF NOT EXISTS headwater_writer;
CREATE ROLE IF NOT EXISTS headwater_asker;
CREATE ROLE IF NOT EXISTS headwater_reader;

GRANT SELECT, INSERT, UPDATE, DELETE, CREATE TEMPORARY TABLES ON `lineage`.* TO headwater_writer;
GRANT SELECT ON `lineage`.* TO headwater_asker;
GRANT SELECT ON `paimon`.* TO headwater_reader;
GRANT SELECT ON `paimon`.* TO headwater_asker;
