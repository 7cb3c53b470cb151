"""Who is who: one physical thing gets one identity, as far as the strings that Spark tells can show it.

Everything here is a pure function of its arguments. What can't be known from them is in an `Environment`; what can't
be known at all comes back as `Unknown`, and what is malformed raises `IdentityError`: never a guess reported as a fact.
"""

from __future__ import annotations

from headwater.events.identity.catalogs import Catalog, catalog_of
from headwater.events.identity.environment import Environment
from headwater.events.identity.jdbc import JdbcDatabase, JdbcTable, jdbc_database, jdbc_identifier, jdbc_table
from headwater.events.identity.kafka import KafkaRead, kafka_namespace, kafka_read, kafka_topic, kafka_write
from headwater.events.identity.namespaces import Namespaces
from headwater.events.identity.paths import Subset, dataset_of_path, dataset_of_uri, glob_root, location_of, under_root
from headwater.events.identity.sources import SourceDatasets, dataset_of_source
from headwater.events.identity.tables import TableIdentity, symlink_of, table_identity
from headwater.events.identity.text import IdentityError, Unknown

__all__ = [
    "Catalog",
    "Environment",
    "IdentityError",
    "JdbcDatabase",
    "JdbcTable",
    "KafkaRead",
    "Namespaces",
    "SourceDatasets",
    "Subset",
    "TableIdentity",
    "Unknown",
    "catalog_of",
    "dataset_of_path",
    "dataset_of_source",
    "dataset_of_uri",
    "glob_root",
    "jdbc_database",
    "jdbc_identifier",
    "jdbc_table",
    "kafka_namespace",
    "kafka_read",
    "kafka_topic",
    "kafka_write",
    "location_of",
    "symlink_of",
    "table_identity",
    "under_root",
]
