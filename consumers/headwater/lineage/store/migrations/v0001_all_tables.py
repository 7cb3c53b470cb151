"""All tables. Written by `python -m tools.migrations`: don't change it, change the tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql, postgresql

revision = "0001"
down_revision = None

_MYSQL_TEXT = mysql.LONGTEXT(charset="utf8mb4", collation="utf8mb4_bin")
TEXT = (
    sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql").with_variant(_MYSQL_TEXT, "mysql", "mariadb")
)


def _binary(size: int) -> sa.types.TypeEngine[bytes]:
    return sa.LargeBinary(size).with_variant(mysql.VARBINARY(size), "mysql", "mariadb")


def upgrade() -> None:  # noqa: PLR0915 - there are as many as there are
    op.create_table(
        "aliases",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("dataset", _binary(16), nullable=True),
        sa.Column("catalog", TEXT, nullable=True),
        sa.Column("database_name", TEXT, nullable=True),
        sa.Column("table_name", TEXT, nullable=True),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("deleted", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index("ix_aliases_dataset", "aliases", ["dataset"], unique=False)
    op.create_index(
        "ix_aliases_table_name",
        "aliases",
        ["table_name"],
        unique=False,
        postgresql_using="hash",
        mysql_length={"table_name": 128},
        mariadb_length={"table_name": 128},
    )
    op.create_table(
        "aligned_jobs",
        sa.Column("group_id", _binary(16), autoincrement=False, nullable=False),
        sa.Column("job_id", _binary(16), autoincrement=False, nullable=False),
        sa.Column("job", TEXT, nullable=False),
        sa.Column("checkpoint", TEXT, nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("done", sa.BigInteger(), nullable=True),
        sa.Column("running", sa.BigInteger(), nullable=True),
        sa.Column("moved_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("group_id", "job_id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_table(
        "alignment_groups",
        sa.Column("id", _binary(16), autoincrement=False, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("tables", TEXT, nullable=False),
        sa.Column("newest", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_table(
        "arrivals",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("producer", _binary(16), nullable=True),
        sa.Column("family", TEXT, nullable=True),
        sa.Column("block", sa.BigInteger(), nullable=True),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("bits", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index("ix_arrivals_last", "arrivals", ["last"], unique=False)
    op.create_index("ix_arrivals_producer_block", "arrivals", ["producer", "block"], unique=False)
    op.create_table(
        "branches",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("dataset", _binary(16), nullable=True),
        sa.Column("generation", TEXT, nullable=True),
        sa.Column("branch", TEXT, nullable=True),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("deleted", sa.BigInteger(), nullable=False),
        sa.Column("origin_stamp", _binary(33), nullable=False),
        sa.Column("from_tag", TEXT, nullable=True),
        sa.Column("from_branch", TEXT, nullable=True),
        sa.Column("from_snapshot", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index("ix_branches_dataset", "branches", ["dataset"], unique=False)
    op.create_table(
        "catalog_names",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("name", TEXT, nullable=True),
        sa.Column("catalog_id", _binary(16), nullable=True),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index("ix_catalog_names_catalog_id", "catalog_names", ["catalog_id"], unique=False)
    op.create_table(
        "catalogs",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("type", TEXT, nullable=True),
        sa.Column("location", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_table(
        "commit_edges",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("barrier", sa.BigInteger(), nullable=False),
        sa.Column("write_id", _binary(16), nullable=False),
        sa.Column("read_id", _binary(16), nullable=True),
        sa.PrimaryKeyConstraint("barrier", "write_id", "id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
        postgresql_partition_by="RANGE (barrier)",
    )
    op.create_table(
        "commits",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("barrier", sa.BigInteger(), nullable=False),
        sa.Column("incarnation", _binary(16), nullable=True),
        sa.Column("job_namespace", TEXT, nullable=True),
        sa.Column("job", TEXT, nullable=True),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("facts_stamp", _binary(33), nullable=False),
        sa.Column("parent_namespace", TEXT, nullable=True),
        sa.Column("parent_job", TEXT, nullable=True),
        sa.Column("run", _binary(16), nullable=True),
        sa.Column("fingerprint", _binary(16), nullable=True),
        sa.Column("batch_id", sa.BigInteger(), nullable=True),
        sa.Column("statement", sa.BigInteger(), nullable=True),
        sa.Column("committed_at", sa.BigInteger(), nullable=True),
        sa.Column("application", TEXT, nullable=True),
        sa.Column("user_name", TEXT, nullable=True),
        sa.Column("operation", TEXT, nullable=True),
        sa.Column("evidence", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("barrier", "id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
        postgresql_partition_by="RANGE (barrier)",
    )
    op.create_index("ix_commits_run_barrier", "commits", ["run", "barrier"], unique=False)
    op.create_table(
        "consumer_offsets",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("consumer_group", TEXT, nullable=False),
        sa.Column("cluster", TEXT, nullable=False),
        sa.Column("topic", TEXT, nullable=False),
        sa.Column("partition_number", sa.Integer(), nullable=False),
        sa.Column("next_offset", sa.BigInteger(), nullable=False),
        sa.Column("moved_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_table(
        "correction_steps",
        sa.Column("correction_id", _binary(16), autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("subject", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("detail", TEXT, nullable=False),
        sa.Column("moved_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("correction_id", "number"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_table(
        "corrections",
        sa.Column("id", _binary(16), autoincrement=False, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("source", TEXT, nullable=False),
        sa.Column("snapshot", sa.BigInteger(), nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("plan", TEXT, nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("made_at", sa.BigInteger(), nullable=False),
        sa.Column("moved_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_table(
        "data_versions",
        sa.Column("group_id", _binary(16), autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("cut", TEXT, nullable=False),
        sa.Column("claimed_by", TEXT, nullable=False),
        sa.Column("claimed_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("group_id", "number"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_table(
        "dataset_links",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("old", _binary(16), nullable=True),
        sa.Column("new", _binary(16), nullable=True),
        sa.Column("reason", TEXT, nullable=True),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index("ix_dataset_links_new", "dataset_links", ["new"], unique=False)
    op.create_index("ix_dataset_links_old", "dataset_links", ["old"], unique=False)
    op.create_table(
        "datasets",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("namespace", TEXT, nullable=True),
        sa.Column("name", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index(
        "ix_datasets_name",
        "datasets",
        ["name"],
        unique=False,
        postgresql_using="hash",
        mysql_length={"name": 128},
        mariadb_length={"name": 128},
    )
    op.create_table(
        "dead_letters",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("error", TEXT, nullable=False),
        sa.Column("source", TEXT, nullable=False),
        sa.Column("cluster", TEXT, nullable=False),
        sa.Column("topic", TEXT, nullable=False),
        sa.Column("topic_name", TEXT, nullable=False),
        sa.Column("partition_number", sa.Integer(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("producer", _binary(16), nullable=True),
        sa.Column("sequence", sa.BigInteger(), nullable=True),
        sa.Column("kind", TEXT, nullable=True),
        sa.Column("append_time", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column(
            "record_key",
            sa.LargeBinary().with_variant(mysql.LONGBLOB(), "mariadb").with_variant(mysql.LONGBLOB(), "mysql"),
            nullable=True,
        ),
        sa.Column("headers", TEXT, nullable=False),
        sa.Column(
            "data",
            sa.LargeBinary().with_variant(mysql.LONGBLOB(), "mariadb").with_variant(mysql.LONGBLOB(), "mysql"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index(
        "ix_dead_letters_state",
        "dead_letters",
        ["state", "created_at"],
        unique=False,
        mysql_length={"state": 16},
        mariadb_length={"state": 16},
    )
    op.create_table(
        "declared_options",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("catalog_id", _binary(16), nullable=True),
        sa.Column("catalog", TEXT, nullable=True),
        sa.Column("name", TEXT, nullable=True),
        sa.Column("value", TEXT, nullable=True),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_table(
        "deletion_epochs",
        sa.Column("id", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_table(
        "failed_statements",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("producer", _binary(16), nullable=True),
        sa.Column("sequence", sa.BigInteger(), nullable=True),
        sa.Column("event_stamp", _binary(33), nullable=False),
        sa.Column("job_namespace", TEXT, nullable=True),
        sa.Column("job", TEXT, nullable=True),
        sa.Column("parent_namespace", TEXT, nullable=True),
        sa.Column("parent_job", TEXT, nullable=True),
        sa.Column("run", _binary(16), nullable=True),
        sa.Column("incarnation", _binary(16), nullable=True),
        sa.Column("time", sa.BigInteger(), nullable=True),
        sa.Column("statement", sa.BigInteger(), nullable=True),
        sa.Column("batch_id", sa.BigInteger(), nullable=True),
        sa.Column("error", TEXT, nullable=True),
        sa.Column("inputs", TEXT, nullable=True),
        sa.Column("outputs", TEXT, nullable=True),
        sa.Column("query", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index("ix_failed_statements_run", "failed_statements", ["run"], unique=False)
    op.create_index("ix_failed_statements_time", "failed_statements", ["time"], unique=False)
    op.create_table(
        "gaps",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("producer", _binary(16), nullable=True),
        sa.Column("sequence", sa.BigInteger(), nullable=True),
        sa.Column("event_stamp", _binary(33), nullable=False),
        sa.Column("job_namespace", TEXT, nullable=True),
        sa.Column("job", TEXT, nullable=True),
        sa.Column("run", _binary(16), nullable=True),
        sa.Column("dataset", _binary(16), nullable=True),
        sa.Column("time", sa.BigInteger(), nullable=True),
        sa.Column("reason", TEXT, nullable=True),
        sa.Column("detail", TEXT, nullable=True),
        sa.Column("bounds", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index("ix_gaps_dataset", "gaps", ["dataset"], unique=False)
    op.create_index(
        "ix_gaps_job",
        "gaps",
        ["job"],
        unique=False,
        postgresql_using="hash",
        mysql_length={"job": 128},
        mariadb_length={"job": 128},
    )
    op.create_index("ix_gaps_run", "gaps", ["run"], unique=False)
    op.create_index("ix_gaps_time", "gaps", ["time"], unique=False)
    op.create_table(
        "generations",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("dataset", _binary(16), nullable=True),
        sa.Column("generation", TEXT, nullable=True),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("deleted", sa.BigInteger(), nullable=False),
        sa.Column("stored_stamp", _binary(33), nullable=False),
        sa.Column("format", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index("ix_generations_dataset", "generations", ["dataset"], unique=False)
    op.create_table(
        "ingest_progress",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("source", TEXT, nullable=False),
        sa.Column("cluster", TEXT, nullable=False),
        sa.Column("topic", TEXT, nullable=False),
        sa.Column("topic_name", TEXT, nullable=False),
        sa.Column("partition_number", sa.Integer(), nullable=False),
        sa.Column("producer", _binary(16), nullable=True),
        sa.Column("stored_until", sa.BigInteger(), nullable=False),
        sa.Column("stored_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_table(
        "job_lineage",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("fingerprint", _binary(16), nullable=True),
        sa.Column("variant", _binary(16), nullable=True),
        sa.Column("first_stamp", _binary(33), nullable=False),
        sa.Column("job_namespace", TEXT, nullable=True),
        sa.Column("job", TEXT, nullable=True),
        sa.Column("query", TEXT, nullable=True),
        sa.Column("columns_omitted", sa.SmallInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index("ix_job_lineage_fingerprint", "job_lineage", ["fingerprint"], unique=False)
    op.create_table(
        "job_lineage_columns",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("fingerprint", _binary(16), nullable=True),
        sa.Column("variant", _binary(16), nullable=True),
        sa.Column("output", sa.BigInteger(), nullable=True),
        sa.Column("input", sa.BigInteger(), nullable=True),
        sa.Column("source", TEXT, nullable=True),
        sa.Column("target", TEXT, nullable=True),
        sa.Column("derivation", TEXT, nullable=True),
        sa.Column("expression", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index("ix_job_lineage_columns_fingerprint", "job_lineage_columns", ["fingerprint"], unique=False)
    op.create_table(
        "job_lineage_tables",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("fingerprint", _binary(16), nullable=True),
        sa.Column("variant", _binary(16), nullable=True),
        sa.Column("side", TEXT, nullable=True),
        sa.Column("position", sa.BigInteger(), nullable=True),
        sa.Column("dataset", _binary(16), nullable=True),
        sa.Column("catalog", TEXT, nullable=True),
        sa.Column("database_name", TEXT, nullable=True),
        sa.Column("table_name", TEXT, nullable=True),
        sa.Column("format", TEXT, nullable=True),
        sa.Column("branch", TEXT, nullable=True),
        sa.Column("opaque", TEXT, nullable=True),
        sa.Column("detail", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index("ix_job_lineage_tables_dataset", "job_lineage_tables", ["dataset"], unique=False)
    op.create_index("ix_job_lineage_tables_fingerprint", "job_lineage_tables", ["fingerprint"], unique=False)
    op.create_table(
        "jobs",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("job_namespace", TEXT, nullable=True),
        sa.Column("job", TEXT, nullable=True),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("about_stamp", _binary(33), nullable=False),
        sa.Column("job_type", TEXT, nullable=True),
        sa.Column("parent_namespace", TEXT, nullable=True),
        sa.Column("parent_job", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_table(
        "modifications",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("producer", _binary(16), nullable=True),
        sa.Column("sequence", sa.BigInteger(), nullable=True),
        sa.Column("event_stamp", _binary(33), nullable=False),
        sa.Column("kind", TEXT, nullable=True),
        sa.Column("effect", TEXT, nullable=True),
        sa.Column("cause", TEXT, nullable=True),
        sa.Column("time", sa.BigInteger(), nullable=True),
        sa.Column("dataset", _binary(16), nullable=True),
        sa.Column("catalog_id", _binary(16), nullable=True),
        sa.Column("generation", TEXT, nullable=True),
        sa.Column("catalog", TEXT, nullable=True),
        sa.Column("database_name", TEXT, nullable=True),
        sa.Column("table_name", TEXT, nullable=True),
        sa.Column("branch", TEXT, nullable=True),
        sa.Column("schema_id", sa.BigInteger(), nullable=True),
        sa.Column("produced", sa.BigInteger(), nullable=True),
        sa.Column("parent_snapshot", sa.BigInteger(), nullable=True),
        sa.Column("detail", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index("ix_modifications_dataset_produced", "modifications", ["dataset", "produced"], unique=False)
    op.create_index("ix_modifications_dataset_time", "modifications", ["dataset", "time"], unique=False)
    op.create_table(
        "pip5_databases",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("catalog", sa.Text(), nullable=True),
        sa.Column("definition", sa.String(length=32), nullable=True),
        sa.PrimaryKeyConstraint("name"),
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
        mysql_engine="InnoDB",
    )
    op.create_table(
        "places",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("dataset", _binary(16), nullable=True),
        sa.Column("catalog", TEXT, nullable=True),
        sa.Column("database_name", TEXT, nullable=True),
        sa.Column("table_name", TEXT, nullable=True),
        sa.Column("generation", TEXT, nullable=True),
        sa.Column("branch", TEXT, nullable=True),
        sa.Column("opaque", TEXT, nullable=True),
        sa.Column("format", TEXT, nullable=True),
        sa.Column("main", sa.SmallInteger(), nullable=True),
        sa.Column("mode", TEXT, nullable=True),
        sa.Column("tag", TEXT, nullable=True),
        sa.Column("commit_kind", TEXT, nullable=True),
        sa.Column("replaced", TEXT, nullable=True),
        sa.Column("made_from", TEXT, nullable=True),
        sa.Column("schema_id", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index("ix_places_dataset", "places", ["dataset"], unique=False)
    op.create_table(
        "producers",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("producer", _binary(16), nullable=True),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("heartbeat_stamp", _binary(33), nullable=False),
        sa.Column("application", TEXT, nullable=True),
        sa.Column("job_namespace", TEXT, nullable=True),
        sa.Column("job", TEXT, nullable=True),
        sa.Column("run", _binary(16), nullable=True),
        sa.Column("sequence", sa.BigInteger(), nullable=True),
        sa.Column("heartbeat_seconds", sa.BigInteger(), nullable=True),
        sa.Column("dropped", TEXT, nullable=True),
        sa.Column("closing_stamp", _binary(33), nullable=False),
        sa.Column("closed_at", sa.BigInteger(), nullable=True),
        sa.Column("complete", sa.SmallInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index(
        "ix_producers_application",
        "producers",
        ["application"],
        unique=False,
        postgresql_using="hash",
        mysql_length={"application": 128},
        mariadb_length={"application": 128},
    )
    op.create_index("ix_producers_closed_at_last", "producers", ["closed_at", "last"], unique=False)
    op.create_index("ix_producers_producer", "producers", ["producer"], unique=False)
    op.create_table(
        "reads",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("barrier", sa.BigInteger(), nullable=False),
        sa.Column("commit_id", _binary(16), nullable=False),
        sa.Column("place_id", _binary(16), nullable=True),
        sa.Column("snapshot", sa.BigInteger(), nullable=True),
        sa.Column("since_snapshot", sa.BigInteger(), nullable=True),
        sa.Column("version", TEXT, nullable=True),
        sa.Column("since_version", TEXT, nullable=True),
        sa.Column("candidates", TEXT, nullable=True),
        sa.Column("row_count", sa.BigInteger(), nullable=True),
        sa.Column("byte_count", sa.BigInteger(), nullable=True),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("barrier", "commit_id", "id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
        postgresql_partition_by="RANGE (barrier)",
    )
    op.create_index(
        "ix_reads_place_id_snapshot_since_snapshot", "reads", ["place_id", "snapshot", "since_snapshot"], unique=False
    )
    op.create_table(
        "run_starts",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("run", _binary(16), nullable=True),
        sa.Column("dataset", _binary(16), nullable=True),
        sa.Column("generation", TEXT, nullable=True),
        sa.Column("branch", TEXT, nullable=True),
        sa.Column("catalog", TEXT, nullable=True),
        sa.Column("database_name", TEXT, nullable=True),
        sa.Column("table_name", TEXT, nullable=True),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("place_stamp", _binary(33), nullable=False),
        sa.Column("snapshot", sa.BigInteger(), nullable=True),
        sa.Column("version", TEXT, nullable=True),
        sa.Column("reason", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index("ix_run_starts_dataset", "run_starts", ["dataset"], unique=False)
    op.create_index("ix_run_starts_run", "run_starts", ["run"], unique=False)
    op.create_table(
        "runs",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("run", _binary(16), nullable=True),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("start_stamp", _binary(33), nullable=False),
        sa.Column("job_namespace", TEXT, nullable=True),
        sa.Column("job", TEXT, nullable=True),
        sa.Column("parent_namespace", TEXT, nullable=True),
        sa.Column("parent_job", TEXT, nullable=True),
        sa.Column("application", TEXT, nullable=True),
        sa.Column("scope", TEXT, nullable=True),
        sa.Column("job_type", TEXT, nullable=True),
        sa.Column("user_name", TEXT, nullable=True),
        sa.Column("code_version", TEXT, nullable=True),
        sa.Column("headwater_version", TEXT, nullable=True),
        sa.Column("parent_run", _binary(16), nullable=True),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("spark", TEXT, nullable=True),
        sa.Column("stream", TEXT, nullable=True),
        sa.Column("outer_run", TEXT, nullable=True),
        sa.Column("status_stamp", _binary(33), nullable=False),
        sa.Column("status", TEXT, nullable=True),
        sa.Column("inferred", sa.SmallInteger(), nullable=True),
        sa.Column("status_at", sa.BigInteger(), nullable=True),
        sa.Column("exit_code", sa.BigInteger(), nullable=True),
        sa.Column("signal", sa.BigInteger(), nullable=True),
        sa.Column("error", TEXT, nullable=True),
        sa.Column("on_job_end", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index("ix_runs_first", "runs", ["first"], unique=False)
    op.create_index(
        "ix_runs_job",
        "runs",
        ["job"],
        unique=False,
        postgresql_using="hash",
        mysql_length={"job": 128},
        mariadb_length={"job": 128},
    )
    op.create_index(
        "ix_runs_parent_job",
        "runs",
        ["parent_job"],
        unique=False,
        postgresql_using="hash",
        mysql_length={"parent_job": 128},
        mariadb_length={"parent_job": 128},
    )
    op.create_index("ix_runs_parent_run", "runs", ["parent_run"], unique=False)
    op.create_index("ix_runs_run", "runs", ["run"], unique=False)
    op.create_table(
        "table_edges",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("target", _binary(16), nullable=True),
        sa.Column("source", _binary(16), nullable=True),
        sa.Column("fingerprint", _binary(16), nullable=True),
        sa.Column("job_namespace", TEXT, nullable=True),
        sa.Column("job", TEXT, nullable=True),
        sa.Column("parent_namespace", TEXT, nullable=True),
        sa.Column("parent_job", TEXT, nullable=True),
        sa.Column("target_name", TEXT, nullable=True),
        sa.Column("source_name", TEXT, nullable=True),
        sa.Column("opaque", TEXT, nullable=True),
        sa.Column("certainty", TEXT, nullable=True),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index("ix_table_edges_source", "table_edges", ["source"], unique=False)
    op.create_index("ix_table_edges_target", "table_edges", ["target"], unique=False)
    op.create_table(
        "table_lineage",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("side", TEXT, nullable=True),
        sa.Column("job_namespace", TEXT, nullable=True),
        sa.Column("job", TEXT, nullable=True),
        sa.Column("parent_namespace", TEXT, nullable=True),
        sa.Column("parent_job", TEXT, nullable=True),
        sa.Column("run", _binary(16), nullable=True),
        sa.Column("dataset", _binary(16), nullable=True),
        sa.Column("catalog", TEXT, nullable=True),
        sa.Column("database_name", TEXT, nullable=True),
        sa.Column("table_name", TEXT, nullable=True),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index("ix_table_lineage_dataset_last", "table_lineage", ["dataset", "last"], unique=False)
    op.create_index(
        "ix_table_lineage_job",
        "table_lineage",
        ["job"],
        unique=False,
        postgresql_using="hash",
        mysql_length={"job": 128},
        mariadb_length={"job": 128},
    )
    op.create_index(
        "ix_table_lineage_parent_job",
        "table_lineage",
        ["parent_job"],
        unique=False,
        postgresql_using="hash",
        mysql_length={"parent_job": 128},
        mariadb_length={"parent_job": 128},
    )
    op.create_index("ix_table_lineage_run", "table_lineage", ["run"], unique=False)
    op.create_table(
        "tags",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("dataset", _binary(16), nullable=True),
        sa.Column("generation", TEXT, nullable=True),
        sa.Column("tag", TEXT, nullable=True),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("deleted", sa.BigInteger(), nullable=False),
        sa.Column("place_stamp", _binary(33), nullable=False),
        sa.Column("snapshot", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index("ix_tags_dataset", "tags", ["dataset"], unique=False)
    op.create_table(
        "tombstones",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("scope", TEXT, nullable=True),
        sa.Column("job_namespace", TEXT, nullable=True),
        sa.Column("job", TEXT, nullable=True),
        sa.Column("with_steps", sa.SmallInteger(), nullable=True),
        sa.Column("run", _binary(16), nullable=True),
        sa.Column("dataset", _binary(16), nullable=True),
        sa.Column("generation", TEXT, nullable=True),
        sa.Column("up_to_snapshot", sa.BigInteger(), nullable=True),
        sa.Column("catalog_id", _binary(16), nullable=True),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("deleted", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index("ix_tombstones_dataset", "tombstones", ["dataset"], unique=False)
    op.create_index(
        "ix_tombstones_job",
        "tombstones",
        ["job"],
        unique=False,
        postgresql_using="hash",
        mysql_length={"job": 128},
        mariadb_length={"job": 128},
    )
    op.create_index("ix_tombstones_run_dataset", "tombstones", ["run", "dataset"], unique=False)
    op.create_table(
        "view_edges",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("view", _binary(16), nullable=True),
        sa.Column("source", _binary(16), nullable=True),
        sa.Column("source_name", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index("ix_view_edges_source", "view_edges", ["source"], unique=False)
    op.create_index("ix_view_edges_view", "view_edges", ["view"], unique=False)
    op.create_table(
        "writer_instants",
        sa.Column("writer", _binary(16), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("requested_at", sa.BigInteger(), nullable=False),
        sa.Column("completed_at", sa.BigInteger(), nullable=True),
        sa.Column("detail", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("writer", "number"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_table(
        "writer_marks",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("moved_at", sa.BigInteger(), nullable=False),
        sa.Column("set_back_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_table(
        "writes",
        sa.Column("id", _binary(16), nullable=False),
        sa.Column("barrier", sa.BigInteger(), nullable=False),
        sa.Column("commit_id", _binary(16), nullable=False),
        sa.Column("place_id", _binary(16), nullable=True),
        sa.Column("snapshot", sa.BigInteger(), nullable=True),
        sa.Column("version", TEXT, nullable=True),
        sa.Column("candidates", TEXT, nullable=True),
        sa.Column("parent_snapshot", sa.BigInteger(), nullable=True),
        sa.Column("row_count", sa.BigInteger(), nullable=True),
        sa.Column("byte_count", sa.BigInteger(), nullable=True),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("barrier", "commit_id", "id"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
        postgresql_partition_by="RANGE (barrier)",
    )
    op.create_index("ix_writes_place_id_first", "writes", ["place_id", "first"], unique=False)
    op.create_index("ix_writes_place_id_parent_snapshot", "writes", ["place_id", "parent_snapshot"], unique=False)
    op.create_index("ix_writes_place_id_snapshot", "writes", ["place_id", "snapshot"], unique=False)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE TABLE commits_rest PARTITION OF commits DEFAULT")
        op.execute("CREATE TABLE reads_rest PARTITION OF reads DEFAULT")
        op.execute("CREATE TABLE writes_rest PARTITION OF writes DEFAULT")
        op.execute("CREATE TABLE commit_edges_rest PARTITION OF commit_edges DEFAULT")
