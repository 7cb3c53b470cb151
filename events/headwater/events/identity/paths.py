"""A path or location → the dataset it is.

Object stores are byte-exact: `a//b` isn't `a/b`, `é` composed isn't `é` decomposed, and nothing is decoded. In file
systems double slashes and dots lead to the same place. Only the spellings of one place are unified: scheme aliases,
the case of scheme and host, default ports, trailing slashes, credentials in front of a host.

The families of storage: how the part behind `//` is read, and which spellings of a path are one place.

What of a path is no part of the dataset: partition directories and globs. Taken off on demand, never silently.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import unquote

from headwater.events.identity.environment import Environment
from headwater.events.identity.hosts import Endpoint, endpoint
from headwater.events.identity.text import IdentityError, dataset, required, shown
from headwater.events.names import DatasetId

_META = re.compile(r"[*?\[\]{}\\]")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """A part of a dataset: the path below its root, and the partition values that the path tells."""

    dataset: DatasetId
    path: str
    partition: tuple[tuple[str, str | None], ...] = ()


def under_root(part: DatasetId, root: DatasetId) -> Subset | None:
    """`part` as a subset of the table at `root`; None if it lies elsewhere. The table itself has the path ''."""
    if part == root:
        return Subset(dataset=root, path="")
    base = "" if root.name == "/" else root.name
    start = len(base) if part.name.startswith(base + "/") else 0 if not base else None
    if part.namespace != root.namespace or start is None:
        return None
    path = part.name[start:].removeprefix("/")
    return Subset(dataset=root, path=path, partition=_values(path))


def glob_root(path: str) -> tuple[str, str | None]:
    """The directory above the first wildcard, and the pattern below it (None: the path has no wildcard).

    For a reader's `path` only: in a table's location the same characters are part of the name.
    """
    meta = _META.search(path)
    if meta is None:
        return path, None
    cut = path.rfind("/", 0, meta.start()) + 1
    return path[:cut], path[cut:]


def _values(path: str) -> tuple[tuple[str, str | None], ...]:
    """The leading `key=value` directories, unescaped as Hive escaped them."""
    values: list[tuple[str, str | None]] = []
    for step in path.split("/"):
        key, equals, value = step.partition("=")
        if not equals or not key:
            break
        values.append((_unescape(key), None if value == _NO_VALUE else _unescape(value)))
    return tuple(values)


def _unescape(text: str) -> str:
    """One character per escape: Hive escapes single ASCII characters, and leaves all others as they are."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


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


_WEB = frozenset({"http", "https"})
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_QUERY = re.compile(r"\?[^/?=]+=")
_AUTHORITY_TAIL = re.compile(r"[?#].*", re.DOTALL)


def dataset_of_path(path: str, environment: Environment) -> DatasetId:
    """The dataset at a path as Spark writes it (`Path.toString`, options, properties): `%20` is three characters.

    Partition directories and globs are taken as they stand; `under_root` and `glob_root` take them off on demand.
    """
    scheme, authority, key = _split_path(_absolute(required(path, "the path"), environment))
    if scheme not in {*_WEB, "file"} and _QUERY.search(f"{authority or ''}/{key}") and _SCHEME.match(path):
        msg = f"the {scheme} location ends in a query (?…=…), which is no part of a place; give it without"
        raise IdentityError(msg)
    return _dataset_at(scheme, authority, key, environment)


def dataset_of_uri(uri: str, environment: Environment) -> DatasetId:
    """The dataset at a `java.net.URI` (`CatalogTable.storage.locationUri`): percent-encoded, a query is dropped."""
    encoded = _AUTHORITY_TAIL.sub("", required(uri, "the location"))
    scheme, authority, key = _split_path(_absolute(required(encoded, "the location"), environment))
    if scheme in _WEB:
        return _dataset_at(scheme, authority, key, environment)
    try:
        decoded = unquote(key, errors="strict")
    except UnicodeDecodeError:
        msg = f"the {scheme} location is percent-encoded, but not in UTF-8; give it as Spark's Path shows it"
        raise IdentityError(msg) from None
    return _dataset_at(scheme, authority, required(decoded, "the location") if key else "", environment)


def location_of(identity: DatasetId) -> str:
    """The path that `dataset_of_path` reads back as this dataset; only for datasets that are a path.

    A key that looks as if it ended in a query (only a URI can tell such a one) isn't read back, but refused.
    """
    namespace, name = identity.namespace, identity.name
    scheme = namespace.partition(":")[0]
    if family(scheme).rooted or name == "/":
        return namespace + name
    return f"{namespace}/{name}"


def _split_path(text: str) -> tuple[str, str | None, str]:
    """Scheme in lower case, authority if there is one, and the rest with its leading slash."""
    match = _SCHEME.match(text)
    if match is None or len(match[1]) == 1:
        msg = f"{shown(text)} is neither an absolute path nor a URL; Windows drives aren't supported"
        raise IdentityError(msg)
    scheme, rest = match[1].lower(), match[2]
    if scheme in _WEB:
        rest = _AUTHORITY_TAIL.sub("", rest)
    if rest.startswith("//"):
        authority, slash, key = rest[2:].partition("/")
        return scheme, authority, slash + key
    if rest.startswith("/"):
        return scheme, None, rest
    msg = f"the {scheme}: location is relative or no location at all; give it as {scheme}:/absolute/path"
    raise IdentityError(msg)


def _absolute(path: str, environment: Environment) -> str:
    """With its scheme: a bare path is on the default file system, a relative one under the working directory."""
    if _SCHEME.match(path):
        return path
    if path.startswith("/"):
        scheme, authority, _ = _split_path(environment.default_filesystem)
        return f"{scheme}://{authority or ''}{path}"
    if environment.working_directory is None or not (
        _SCHEME.match(environment.working_directory) or environment.working_directory[:1] == "/"
    ):
        msg = f"path {shown(path)} is relative and the working directory isn't known; give it from the root"
        raise IdentityError(msg)
    return _absolute(f"{environment.working_directory.rstrip('/')}/{path}", environment)


def _dataset_at(scheme: str, authority: str | None, key: str, environment: Environment) -> DatasetId:
    kind = family(scheme)
    if not authority and not kind.local:
        authority = _default_authority(scheme, environment)
    namespace = kind.namespace(scheme, authority or "", environment)
    return dataset(namespace, kind.name(key))


def _default_authority(scheme: str, environment: Environment) -> str:
    """Hadoop's rule: a location without an authority has the default file system's, if that has the same scheme."""
    default_scheme, authority, _ = _split_path(environment.default_filesystem)
    if default_scheme == scheme and authority:
        return authority
    fallback = {"dbfs": environment.workspace, "viewfs": "default"}.get(scheme)
    if not fallback:
        msg = (
            f"the {scheme}: location names no {'workspace' if scheme == 'dbfs' else 'host or bucket'}; give it in full"
        )
        raise IdentityError(msg)
    return fallback
