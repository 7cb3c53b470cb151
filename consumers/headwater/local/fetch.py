"""Brings artifacts from Maven repositories: by Maven where there is one, else by the Ivy that pyspark carries.

Makes a JRE from a wheel trust the certificate authorities that this Python trusts. Such a JRE has its own list and
doesn't know authorities that the machine's owner added, such as that of a company's proxy. Its downloads would fail
although Python's succeed.

Iceberg's runtime for Spark, which the demo's tables need, is fetched once and verified every time, like the servers.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import ssl
import struct
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Protocol
from xml.sax.saxutils import escape

from headwater.local.cache import cached_directory, expected_hashes, verify
from headwater.local.errors import FetchError, MissingRequirementError
from headwater.local.java import JavaRuntime, java
from headwater.local.progress import announce
from headwater.plugins import extra_command

# The Java KeyStore format, version 2, with trusted certificates only. Its password protects nothing here: it is the
# one every JRE uses for its own list, and it goes into the digest at the end.
_MAGIC = 0xFEEDFEED
_VERSION = 2
_TRUSTED_CERTIFICATE = 2
_PASSWORD = "changeit"  # noqa: S105 -- public, see above
_WHITENER = b"Mighty Aphrodite"


def trust_options(directory: Path) -> list[str]:
    """Write a trust store into `directory` and return the JVM options that name it; none if Python trusts nobody."""
    certificates = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not certificates:
        return []
    store = directory / "trusted.jks"
    store.write_bytes(key_store(certificates))
    return [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStoreType=JKS"]


def key_store(certificates: Sequence[bytes]) -> bytes:
    """Return a Java KeyStore that trusts these DER certificates."""
    body = struct.pack(">III", _MAGIC, _VERSION, len(certificates))
    for number, certificate in enumerate(certificates):
        body += struct.pack(">I", _TRUSTED_CERTIFICATE) + _utf(f"ca{number}") + struct.pack(">Q", 0)
        body += _utf("X.509") + struct.pack(">I", len(certificate)) + certificate
    return body + hashlib.sha1(_PASSWORD.encode("utf-16-be") + _WHITENER + body).digest()  # noqa: S324 -- the format's


def _utf(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")


_TIMEOUT_SECONDS = 900.0
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>headwater</groupId><artifactId>local</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>{dependencies}
  </dependencies>
</project>
"""
_POM_DEPENDENCY = """
    <dependency><groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version></dependency>"""
_POM_ALONE = """
    <dependency><groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version><type>{3}</type>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"""
_IVY = """<ivy-module version="2.0">
  <info organisation="headwater" module="local"/>
  <dependencies>{dependencies}
  </dependencies>
</ivy-module>
"""
_IVY_DEPENDENCY = """
    <dependency org="{0}" name="{1}" rev="{2}" conf="default->default"/>"""
_IVY_ALONE = """
    <dependency org="{0}" name="{1}" rev="{2}" conf="default->master" transitive="false">
      <artifact name="{1}" type="{3}" ext="{3}"/></dependency>"""


@dataclass(frozen=True)
class Artifact:
    """What to fetch, with everything it needs at run time; what isn't a jar is fetched alone."""

    group: str
    name: str
    version: str
    extension: str = "jar"

    def pom_dependency(self) -> str:
        """Return it as a dependency of a project of Maven."""
        return self._xml(_POM_DEPENDENCY if self.extension == "jar" else _POM_ALONE)

    def ivy_dependency(self) -> str:
        """Return it as a dependency of a module of Ivy."""
        return self._xml(_IVY_DEPENDENCY if self.extension == "jar" else _IVY_ALONE)

    def _xml(self, template: str) -> str:
        return template.format(*map(escape, (self.group, self.name, self.version, self.extension)))


class Fetcher(Protocol):
    """A way to bring artifacts."""

    def fetch(self, artifacts: Sequence[Artifact], into: Path) -> None:
        """Put the artifacts and all they need into the directory `into`; FetchError if that doesn't go."""
        ...


def fetcher(environ: Mapping[str, str] = os.environ) -> Fetcher:
    """Return Maven where there is one, else Ivy; MissingRequirementError names what to install if there is neither."""
    mvn = shutil.which("mvn", path=environ.get("PATH", ""))
    if mvn is not None:
        return Maven(Path(mvn))
    jar = ivy_jar()
    if jar is not None:
        return Ivy(jar)
    raise MissingRequirementError(
        f"neither Maven nor pyspark (which carries Ivy) is here to fetch a server with: {extra_command('local')}"
    )


def ivy_jar() -> Path | None:
    """Return the Ivy that the installed pyspark carries; pyspark itself is not imported."""
    spec = find_spec("pyspark")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for jar in sorted(Path(place, "jars").glob("ivy-*.jar")):
            return jar
    return None


@dataclass(frozen=True)
class Maven:
    """`mvn dependency:copy-dependencies` with a project made for it; the user's settings.xml holds."""

    mvn: Path

    def fetch(self, artifacts: Sequence[Artifact], into: Path) -> None:
        """See Fetcher."""
        with tempfile.TemporaryDirectory(prefix="headwater-maven-") as scratch:
            pom = Path(scratch, "pom.xml")
            pom.write_text(_POM.format(dependencies="".join(one.pom_dependency() for one in artifacts)))
            command: list[str | Path] = [self.mvn, "-B", "-q", "-f", pom, "dependency:copy-dependencies"]
            options = ["-DincludeScope=runtime", f"-DoutputDirectory={into}"]
            chosen = java()
            own = " ".join([os.environ.get("MAVEN_OPTS", ""), *_trust(chosen, Path(scratch))])
            _run("Maven", [*command, *options], Path(scratch), JAVA_HOME=str(chosen.home), MAVEN_OPTS=own)


@dataclass(frozen=True)
class Ivy:
    """Ivy's own command line; without a `cache` it downloads everything anew."""

    jar: Path
    cache: Path | None = None

    def fetch(self, artifacts: Sequence[Artifact], into: Path) -> None:
        """See Fetcher."""
        with tempfile.TemporaryDirectory(prefix="headwater-ivy-") as scratch:
            module = Path(scratch, "ivy.xml")
            module.write_text(_IVY.format(dependencies="".join(one.ivy_dependency() for one in artifacts)))
            chosen = java()
            launcher: list[str | Path] = [chosen.executable, *_trust(chosen, Path(scratch)), "-jar", self.jar]
            cache = self.cache or Path(scratch, "cache")
            # A relative pattern, because brackets and parentheses of a directory's name would mean something in it.
            names = "[artifact]-[revision](-[classifier]).[ext]"
            _run("Ivy", [*launcher, "-ivy", module, "-cache", cache, "-confs", "default", "-retrieve", names], into)


def _trust(chosen: JavaRuntime, scratch: Path) -> list[str]:
    return trust_options(scratch) if chosen.from_wheel else []


def _run(tool: str, command: Sequence[str | Path], directory: Path, **environ: str) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            env={**os.environ, **environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise FetchError(f"{tool} didn't end within {_TIMEOUT_SECONDS:.0f} s: is the network there?") from None
    if done.returncode != 0:
        end = "\n".join(done.stdout.splitlines()[-15:])
        raise FetchError(
            f"{tool} could not fetch (exit code {done.returncode}): check the network, and the mirrors and proxy in "
            f"its settings. It said:\n{end}"
        )


RUNTIMES: Final = {
    "3.5": Artifact("org.apache.iceberg", "iceberg-spark-runtime-3.5_2.12", "1.12.0"),
    "4.0": Artifact("org.apache.iceberg", "iceberg-spark-runtime-4.0_2.13", "1.11.0"),
    "4.1": Artifact("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.12.0"),
}
"""By version of Spark the newest one that its pyspark, with its Scala, takes."""
HASHES: Final = "iceberg.sha256"


def iceberg_runtime(
    spark: str,
    fetch_with: Callable[[], Fetcher] = fetcher,
    cache: Path | None = None,
    hashes: Mapping[str, str] | None = None,
) -> Path:
    """Return the jar for a version of pyspark. Its code runs in the user's JVM, so its SHA-256 is checked each time."""
    short = ".".join(spark.split(".")[:2])
    if short not in RUNTIMES:
        raise MissingRequirementError(
            f"there is no Iceberg for pyspark {spark}: install pyspark {', '.join(RUNTIMES)}, the newest for preference"
        )
    runtime = RUNTIMES[short]
    jar = jar_name(runtime)
    expected = {jar: (hashes or expected_hashes(HASHES))[jar]}

    def fill(place: Path) -> None:
        with announce(f"fetching Iceberg {runtime.version} for Spark {short} (50 MB; once)"):
            fetch_with().fetch((runtime,), place)

    name = jar.removesuffix(".jar")
    return cached_directory(name, fill, check=lambda place: verify(place, expected), cache=cache) / jar


def jar_name(runtime: Artifact) -> str:
    return f"{runtime.name}-{runtime.version}.jar"
