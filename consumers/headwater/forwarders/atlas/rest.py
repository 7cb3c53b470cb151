"""Atlas's REST API: types, entities as they are, and writes. All calls block their thread.

A TransientError means that it is to be tried again, RefusedContentError that what was sent will never be accepted, and
any other TerminalError that somebody has to change something.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Final

import httpx

from headwater.errors import HeadwaterError, TerminalError, TransientError
from headwater.events.redaction import redact
from headwater.forwarders.atlas.entities import AtlasRef
from headwater.forwarders.atlas.messages import small_requests, with_guids
from headwater.forwarders.atlas.options import AtlasConfig
from headwater.forwarders.atlas.resolving import AtlasPlan, FoundEntity, Related
from headwater.forwarders.atlas.types import Definition, added_attributes, definitions, missing_definitions
from headwater.forwarders.http_delivery import BusyTargetError, RefusedContentError, response_error
from headwater.forwarders.secret_filter import SecretFilter
from headwater.spi import CheckResult

_API: Final = "/api/atlas"
_MOST_IN_URL: Final = 3_000
"""So many characters of names are in one question: servers refuse URLs that are too long."""
_MOST_DELETED: Final = 50
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_CHANGED_MEANWHILE: Final = frozenset(
    {"ATLAS-404-00-005", "ATLAS-404-00-009", "ATLAS-404-00-00A", "ATLAS-404-00-00B", "ATLAS-404-00-00F"}
)
"""What was there when it was read is no longer there."""
_NO_SUCH_TYPE: Final = frozenset({"ATLAS-404-00-001", "ATLAS-404-00-00E", "ATLAS-400-00-014"})
_REFUSED: Final = frozenset({"ATLAS-404-00-007", "ATLAS-404-00-00D"})


class AtlasService:
    """A client of one Atlas."""

    def __init__(self, config: AtlasConfig) -> None:
        url = (config.url or "").rstrip("/")
        self._shown: Final = str(redact(url))
        self._registers: Final = config.register_types
        self._is_registered = False
        headers = dict(config.header)
        if config.token is not None:
            headers["Authorization"] = f"Bearer {config.token}"
        self._secrets: Final = SecretFilter([config.token, config.password, *headers.values()])
        auth = None if config.user is None else httpx.BasicAuth(config.user, config.password or "")
        try:
            self._client: Final = httpx.Client(
                base_url=url + _API,
                auth=auth,
                headers=headers,
                verify=ssl.create_default_context(cafile=config.ca) if config.ca else True,
                timeout=config.request_timeout,
                follow_redirects=False,
            )
        except (OSError, httpx.InvalidURL) as e:
            raise TerminalError(f"{self._shown}: {e}: correct url, or ca") from e

    def register_types(self) -> None:
        """Register the types that are missing, and add what registered ones lack. Asked once."""
        if self._is_registered or not self._registers:
            return
        found = self._registered_types()
        missing = missing_definitions(found)
        if any(missing.values()):
            self._call("POST", "/v2/types/typedefs", missing)
        grown = added_attributes(found)
        if grown:
            self._call("PUT", "/v2/types/typedefs", {"entityDefs": grown})
        self._is_registered = True

    def read(self, refs: Iterable[AtlasRef], with_relations: Iterable[AtlasRef]) -> dict[AtlasRef, FoundEntity]:
        """Return those of the entities that are there, some of them with where their references lead to."""
        whole = set(with_relations)
        found: dict[AtlasRef, FoundEntity] = {}
        for is_whole, wanted in ((True, whole), (False, set(refs) - whole)):
            for type_name, each in groupby(sorted(wanted), key=_type_of):
                for names in _chunks([ref.qualified_name for ref in each]):
                    found.update((entity.ref, entity) for entity in self._read(type_name, names, is_whole=is_whole))
        return found

    def write(self, plan: AtlasPlan, is_wanted: Callable[[], bool]) -> None:
        """Write what is planned: what is to be there first, then what is to go. Stop when it is no longer wanted."""
        assigned: dict[str, str] = {}
        for entities in small_requests(plan.entities):
            if not is_wanted():
                return
            answer = self._call("POST", "/v2/entity/bulk", {"entities": with_guids(entities, assigned)})
            assigned.update(answer.get("guidAssignments") or {})
        for first in range(0, len(plan.deletions), _MOST_DELETED):
            guids = plan.deletions[first : first + _MOST_DELETED]
            self._call("DELETE", "/v2/entity/bulk", params={"guid": guids})

    def check(self) -> Iterator[CheckResult]:
        version = self._secrets.hide(str(self._call("GET", "/admin/version").get("Version", "of an unknown version")))
        yield CheckResult.ok("server", f"{self._shown} is Atlas {version}")
        status = self._secrets.hide(str(self._call("GET", "/admin/status").get("Status")))
        if status != "ACTIVE":
            yield CheckResult.error("status", f"it is {status}", "wait until it is ACTIVE, or correct url")
        lacking = sorted(
            name for names in missing_definitions(self._registered_types()).values() for name in _names(names)
        )
        if not lacking:
            yield CheckResult.ok("types", "headwater's types are registered")
        elif self._registers:
            yield CheckResult.ok("types", f"{', '.join(lacking)} will be registered with the first event")
        else:
            yield CheckResult.error(
                "types", f"{', '.join(lacking)} aren't registered", "let headwater register them: register.types = true"
            )

    def close(self) -> None:
        self._client.close()

    def _registered_types(self) -> dict[str, Definition]:
        found: dict[str, Definition] = {}
        for _, definition in definitions():
            name = definition["name"]
            with self._secrets.hidden():
                response = self._send("GET", f"/v2/types/typedef/name/{name}")
                if response.status_code == _NOT_FOUND and _error_code(response) in _NO_SUCH_TYPE:
                    continue
                found[name] = self._content(response)
                if found[name].get("name") != name:
                    raise TerminalError(f"{self._shown} answers another thing than the type {name}: correct url")
        return found

    def _read(self, type_name: str, names: list[str], *, is_whole: bool) -> Iterator[FoundEntity]:
        params = {f"attr_{number}:qualifiedName": name for number, name in enumerate(names)}
        params["minExtInfo"] = "true"
        if not is_whole:
            params["ignoreRelationships"] = "true"
        answer = self._call("GET", f"/v2/entity/bulk/uniqueAttribute/type/{type_name}", params=params)
        for entity in answer.get("entities") or ():
            if entity.get("status") == "ACTIVE":
                yield _found_entity(type_name, entity)

    def _call(self, method: str, path: str, body: object = None, params: Mapping[str, Any] | None = None) -> Any:
        with self._secrets.hidden():
            return self._content(self._send(method, path, body, params))

    def _send(
        self, method: str, path: str, body: object = None, params: Mapping[str, Any] | None = None
    ) -> httpx.Response:
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        headers = {} if content is None else {"Content-Type": "application/json"}
        try:
            return self._client.request(method, path, content=content, headers=headers, params=params)
        except httpx.TransportError as e:
            words = f"{self._shown} can't be reached: {redact(f'{type(e).__name__}: {e}')}"
            if isinstance(e, (httpx.UnsupportedProtocol, httpx.ProxyError)) or "CERTIFICATE_VERIFY" in str(e):
                raise TerminalError(f"{words}; correct url, or ca") from e
            raise TransientError(words) from e

    def _content(self, response: httpx.Response) -> Any:
        error = self._error(response)
        if error is not None:
            raise error
        if not response.content:
            return {}
        try:
            return response.json()
        except ValueError as e:
            raise TerminalError(f"{self._shown} answers what isn't JSON: correct url") from e

    def _error(self, response: httpx.Response) -> HeadwaterError | None:
        """Return what an answer means. Atlas uses 404 and 409 for several things; its own code tells them apart."""
        if response.is_success:
            return None
        code, words = (
            _error_code(response),
            f"{self._shown} answers {response.status_code} ({redact(self._secrets.hide(_message(response)))})",
        )
        if code in _NO_SUCH_TYPE:
            self._is_registered = False
            return TerminalError(f"{words}: register the type, or load Atlas's own models")
        if code in _CHANGED_MEANWHILE or (code and response.status_code == _CONFLICT):
            return BusyTargetError(f"{words}: somebody changed it meanwhile")
        if code in _REFUSED:
            return RefusedContentError(words)
        return response_error(
            self._shown,
            response.status_code,
            retry_after=response.headers.get("Retry-After"),
            body=self._secrets.hide(_message(response)),
        )


def _type_of(ref: AtlasRef) -> str:
    return ref.type_name


def _found_entity(type_name: str, entity: Mapping[str, Any]) -> FoundEntity:
    attributes = entity["attributes"]
    relations = {
        name: tuple(
            Related(each["typeName"], each["guid"], each.get("displayText") or "") for each in value if _leads(each)
        )
        for name, value in (entity.get("relationshipAttributes") or {}).items()
        if isinstance(value, list)
    }
    return FoundEntity(AtlasRef(type_name, attributes["qualifiedName"]), entity["guid"], attributes, relations)


def _leads(reference: Mapping[str, Any]) -> bool:
    """Whether a reference still holds, and leads to what is still there."""
    return reference.get("relationshipStatus") == "ACTIVE" and reference.get("entityStatus") == "ACTIVE"


def _chunks(names: Iterable[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for name in names:
        if chunk and size + len(name.encode()) > _MOST_IN_URL:
            yield chunk
            chunk, size = [], 0
        chunk.append(name)
        size += 3 * len(name.encode()) + len("attr_00:qualifiedName=&")
    if chunk:
        yield chunk


def _names(found: Iterable[Definition]) -> Iterator[str]:
    return (each["name"] for each in found)


def _error_code(response: httpx.Response) -> str:
    return str(_json_error(response).get("errorCode") or "")


def _message(response: httpx.Response) -> str:
    told = _json_error(response)
    return " ".join(str(told[key]) for key in ("errorCode", "errorMessage") if told.get(key)) or response.text


def _json_error(response: httpx.Response) -> dict[str, Any]:
    try:
        told = response.json()
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
