"""What a pure function can't look up: on which host, with which defaults and metastore an application runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headwater.events.identity.hosts import Endpoint, endpoint, is_loopback, normal_host
from headwater.events.identity.namespaces import Namespaces
from headwater.events.identity.text import IdentityError


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Where an application stands. Everything but the host may stay out; what then can't be determined is reported
    as unknown."""

    host: str
    """The driver's host: local files and `localhost` are there."""
    namespaces: Namespaces = field(default_factory=Namespaces)
    default_filesystem: str = "file:///"
    working_directory: str | None = None
    """What a relative path is relative to."""
    nameservices: frozenset[str] | None = None
    """The HDFS nameservices (`dfs.nameservices`), which have no port; None: not known."""
    session_catalog: str = "in-memory"
    """`hive` or `in-memory` (`spark.sql.catalogImplementation`)."""
    warehouse: str | None = None
    metastore: str | None = None
    """`hive.metastore.uris`."""
    metastore_database: str | None = None
    """`javax.jdo.option.ConnectionURL`, of a metastore inside the driver."""
    derby_home: str | None = None
    """`derby.system.home` of the driver's JVM, where Derby looks for databases by relative names; None: the working
    directory."""
    workspace: str | None = None
    """The Databricks workspace that `dbfs:` belongs to."""
    aws_region: str | None = None
    aws_account: str | None = None

    @classmethod
    def from_conf(cls, conf: Mapping[str, str], *, host: str, working_directory: str | None = None) -> Environment:
        """From Spark's configuration with Hadoop's (bare or under `spark.hadoop.`) laid over or under it."""

        def setting(*keys: str) -> str | None:
            return next((conf[k] for key in keys for k in (key, "spark.hadoop." + key) if conf.get(k)), None)

        services = setting("dfs.nameservices")
        return cls(
            host=host,
            namespaces=Namespaces.from_conf(conf),
            default_filesystem=setting("fs.defaultFS") or "file:///",
            working_directory=working_directory,
            nameservices=None if services is None else frozenset(s.strip().lower() for s in services.split(",")),
            session_catalog=setting("spark.sql.catalogImplementation") or "in-memory",
            warehouse=setting("spark.sql.warehouse.dir", "hive.metastore.warehouse.dir"),
            metastore=setting("hive.metastore.uris"),
            metastore_database=setting("javax.jdo.option.ConnectionURL"),
            derby_home=setting("derby.system.home"),
            workspace=setting("spark.databricks.workspaceUrl"),
            aws_region=setting("aws.region", "spark.glue.region"),
            aws_account=setting("hive.metastore.glue.catalogid", "spark.glue.accountId"),
        )

    def placed(self, where: Endpoint) -> Endpoint:
        """The same place seen from outside: this machine by its name, a known host by its logical name."""
        logical = self.namespaces.logical(where)
        if logical is None and is_loopback(where.host):
            where = Endpoint(normal_host(self.host), where.port)
            logical = self.namespaces.logical(where)
        return where if logical is None else Endpoint(logical)

    def authority(self, places: Iterable[Endpoint]) -> str:
        """One name for a list of hosts: their logical name if any has one, else the first of the sorted list."""
        found = [self.placed(place) for place in places]
        if not found:
            msg = "no host is given; without one the server can't be named"
            raise IdentityError(msg)
        logical = sorted({str(place) for place in found if self._is_logical(place)})
        if len(logical) > 1:
            msg = f"the hosts of one list belong to namespaces {' and '.join(logical)}; put them under one namespace"
            raise IdentityError(msg)
        return logical[0] if logical else str(min(found, key=lambda place: (place.host, place.port or 0)))

    def local_authority(self) -> str:
        """The host of local files."""
        return self.authority([endpoint(self.host)])

    def _is_logical(self, place: Endpoint) -> bool:
        return place.port is None and self.namespaces.logical(place) == place.host
