"""The families of storage: how the part behind `//` is read, and which spellings of a path are one place."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from headwater.events.identity.environment import Environment
from headwater.events.identity.errors import IdentityError
from headwater.events.identity.hosts import Endpoint, endpoint

_Namespace: TypeAlias = Callable[[str, str, Environment], str]

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_CONTAINER = re.compile(r"[^\s@:/\\?#%]+")
_OSS_ENDPOINT = re.compile(r"([a-z0-9-]+)\.oss-[a-z0-9-]+\.aliyuncs\.com")


@dataclass(frozen=True, slots=True)
class Family:
    """Stores that are named alike. `rooted`: a name begins with a slash, as in a file system."""

    namespace: _Namespace
    name: Callable[[str], str]
    rooted: bool = False
    local: bool = False


def family(scheme: str) -> Family:
    return _FAMILIES.get(scheme, _OTHER)


def object_key(path: str) -> str:
    """The key behind the slash that ends the bucket, byte for byte; only a trailing slash says nothing."""
    return path[1:].rstrip("/") or "/"


def file_path(path: str) -> str:
    """Dots and double slashes resolved as Hadoop's Path does before anything is opened."""
    steps: list[str] = []
    for step in path.split("/"):
        if step == "..":
            del steps[-1:]
        elif step not in {"", "."}:
            steps.append(step)
    return "/" + "/".join(steps)


def _url_path(path: str) -> str:
    return path.rstrip("/") or "/"


def without_user(authority: str) -> str:
    return authority.rpartition("@")[2]


def _bucket(canonical: str) -> _Namespace:
    def namespace(_scheme: str, authority: str, _site: Environment) -> str:
        bucket = without_user(authority)
        if not _BUCKET.fullmatch(bucket):
            msg = f"the {canonical} location doesn't begin with a bucket; give {canonical}://bucket/key, without a user"
            raise IdentityError(msg)
        oss = _OSS_ENDPOINT.fullmatch(bucket.lower()) if canonical == "oss" else None
        return f"{canonical}://{oss[1] if oss else bucket}"

    return namespace


def _container(canonical: str) -> _Namespace:
    def namespace(_scheme: str, authority: str, environment: Environment) -> str:
        container, at, account = authority.rpartition("@")
        if not at or not _CONTAINER.fullmatch(container):
            msg = f"the {canonical} location names no container; give {canonical}://container@account.…/path"
            raise IdentityError(msg)
        place = environment.placed(endpoint(account))
        return f"{canonical}://{container}@{Endpoint(place.host, None if place.port == 443 else place.port)}"

    return namespace


def _server(default_port: int | None = None, *, show_default: bool = True) -> _Namespace:
    def namespace(scheme: str, authority: str, environment: Environment) -> str:
        place = environment.placed(endpoint(without_user(authority), default_port))
        shown = Endpoint(place.host) if not show_default and place.port == default_port else place
        return f"{scheme}://{shown}"

    return namespace


def _hdfs(scheme: str, authority: str, environment: Environment) -> str:
    """A name node has a port, a nameservice has none. A bare word may be either: only the known list decides."""
    place = endpoint(without_user(authority))
    if place.port is None and not _may_be_nameservice(place.host, environment):
        place = Endpoint(place.host, 8020)
    return f"{scheme}://{environment.authority([place])}"


def _may_be_nameservice(host: str, environment: Environment) -> bool:
    if environment.nameservices is not None:
        return host in environment.nameservices
    return "." not in host and not host.startswith("[") and host != "localhost"


def _local(_scheme: str, authority: str, environment: Environment) -> str:
    if not authority:
        return f"file://{environment.local_authority()}"
    return f"file://{environment.authority([endpoint(authority)])}"


def _workspace(_scheme: str, authority: str, environment: Environment) -> str:
    return f"dbfs://{environment.authority([Endpoint(endpoint(authority).host)])}"


_OTHER: Final = Family(_server(), _url_path, rooted=True)
_FILES: Final = Family(_server(), file_path, rooted=True)
_AZURE_DATA: Final = Family(_container("abfss"), object_key)
_AZURE_BLOBS: Final = Family(_container("wasbs"), object_key)

_FAMILIES: Final[dict[str, Family]] = {
    "file": Family(_local, file_path, rooted=True, local=True),
    "hdfs": Family(_hdfs, file_path, rooted=True),
    "dbfs": Family(_workspace, file_path, rooted=True),
    "http": Family(_server(80, show_default=False), _url_path, rooted=True),
    "https": Family(_server(443, show_default=False), _url_path, rooted=True),
    "alluxio": Family(_server(19998), file_path, rooted=True),
    "abfs": _AZURE_DATA,
    "abfss": _AZURE_DATA,
    "wasb": _AZURE_BLOBS,
    "wasbs": _AZURE_BLOBS,
    **dict.fromkeys(("viewfs", "adl", "maprfs", "ofs", "o3fs", "webhdfs", "swebhdfs", "ftp", "sftp"), _FILES),
    **dict.fromkeys(("s3", "s3a", "s3n"), Family(_bucket("s3"), object_key)),
    **dict.fromkeys(("gs", "gcs"), Family(_bucket("gs"), object_key)),
    **{scheme: Family(_bucket(scheme), object_key) for scheme in ("oss", "cosn", "obs", "tos", "bos", "ks3")},
}
