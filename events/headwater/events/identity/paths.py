"""A path or location → the dataset it is.

Object stores are byte-exact: `a//b` isn't `a/b`, `é` composed isn't `é` decomposed, and nothing is decoded. In file
systems double slashes and dots lead to the same place. Only the spellings of one place are unified: scheme aliases,
the case of scheme and host, default ports, trailing slashes, credentials in front of a host.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from headwater.events.identity.environment import Environment
from headwater.events.identity.errors import IdentityError
from headwater.events.identity.filesystems import family
from headwater.events.identity.text import dataset, required, shown
from headwater.events.names import DatasetId

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
