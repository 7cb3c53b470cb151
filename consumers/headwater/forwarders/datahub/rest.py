"""DataHub's metadata service, which proposals go to by its REST interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import requests
from datahub.configuration.common import ConfigurationError as DataHubConfigurationError
from datahub.configuration.common import OperationalError
from datahub.emitter.rest_emitter import DataHubRestEmitter, EmitMode

from headwater.errors import ConfigurationError, HeadwaterError, TerminalError, TransientError
from headwater.forwarders.datahub.options import DataHubConfig
from headwater.forwarders.datahub.proposals import Proposal, independent_batches
from headwater.forwarders.http_delivery import BusyTargetError, keep_authorization, response_error
from headwater.forwarders.secret_filter import SecretFilter
from headwater.spi import CheckResult

MOST_AT_ONCE: Final = 200
"""So many proposals are in a request at most, as many as the SDK puts into one."""
_FAULTS_OF_REQUESTS: Final = (
    requests.exceptions.InvalidURL,
    requests.exceptions.InvalidSchema,
    requests.exceptions.MissingSchema,
    requests.exceptions.TooManyRedirects,
)
"""What trying again can't mend."""


class RestTarget:
    """DataHub's metadata service, by its REST interface."""

    def __init__(self, config: DataHubConfig) -> None:
        self._url: Final = (config.url or "").rstrip("/")
        self._mode: Final = EmitMode.ASYNC if config.mode == "async" else EmitMode.SYNC_PRIMARY
        try:
            self._emitter: Final = DataHubRestEmitter(
                self._url,
                token=config.token,
                timeout_sec=config.request_timeout,
                retry_max_times=0,  # who calls waits and tries again, and knows how long
                extra_headers=dict(config.header),
                ca_certificate_path=str(config.ca) if config.ca else None,
                openapi_ingestion=False,  # it would change the order, and write what is only to be created
            )
        except DataHubConfigurationError as e:
            raise ConfigurationError(f"url: {e}") from e
        self._secrets: Final = SecretFilter([config.token, *config.header.values()])
        session = self._emitter.session
        if config.token or any(name.lower() == "authorization" for name in config.header):
            session.auth = keep_authorization
        session.max_redirects = 0  # behind one is a page for logging in, which answers 200
        session.hooks["response"].append(self._judge)

    def send(self, proposals: Sequence[Proposal], name: str, is_wanted: Callable[[], bool]) -> None:  # noqa: ARG002
        for batch in independent_batches(proposals, MOST_AT_ONCE):
            if not is_wanted():
                return
            self._call(partial(self._emitter.emit_mcps, batch, emit_mode=self._mode))

    def check(self) -> Iterator[CheckResult]:
        version = self._call(lambda: self._emitter.fetch_server_config().service_version)
        shown = self._secrets.hide(str(version or "of an unknown version"))
        yield CheckResult.ok("service", f"{self._url} answers: DataHub {shown}")
        yield CheckResult.ok("user", f"it knows us as {self._secrets.hide(self._call(self._user))}")
        yield CheckResult.warning(
            "rights",
            "whether this user may write shows at the first event: DataHub tells nobody without writing",
            "give it the privilege Edit Entity, or the role Editor",
        )

    def close(self) -> None:
        self._emitter.close()

    def _call(self, question: Callable[[], Any]) -> Any:
        with self._secrets.hidden():
            return with_errors_of_requests(question, self._url)

    def _user(self) -> str:
        question = {"query": "{ me { corpUser { username } } }"}
        answer = self._emitter.session.post(f"{self._url}/api/graphql", json=question).json()
        try:
            return str(answer["data"]["me"]["corpUser"]["username"])
        except (KeyError, TypeError):
            return "its name isn't told"

    def _judge(self, response: requests.Response, *_: object, **__: object) -> None:
        """Raise the error that an answer is. A success that isn't JSON comes from somebody else."""
        if response.is_redirect:
            return
        retry_after = response.headers.get("Retry-After")
        body = self._secrets.hide(message_of(response))
        error = response_error(self._url, response.status_code, retry_after=retry_after, body=body)
        if error is not None:
            raise error
        try:
            response.json()
        except ValueError as e:
            raise BusyTargetError(f"{self._url} answers something that isn't DataHub's: is a proxy before it?") from e


def with_errors_of_requests(call: Callable[[], Any], url: str) -> Any:
    """Call the SDK, and raise our own error for its own."""
    try:
        return call()
    except HeadwaterError:
        raise
    except (OperationalError, requests.RequestException) as e:
        cause = e.__cause__ if isinstance(e, OperationalError) else e
        if isinstance(cause, _FAULTS_OF_REQUESTS):
            raise TerminalError(f"{url}: {cause}: correct the URL") from e
        if isinstance(cause, requests.exceptions.SSLError):
            raise TerminalError(f"{url}: {cause}: write ca, or correct the URL") from e
        raise TransientError(f"{url} can't be reached: {cause}") from e
    except DataHubConfigurationError as e:
        raise TerminalError(f"{url}: {e}") from e


def message_of(response: requests.Response) -> str:
    """Return what the service says is wrong, without the trace of its stack."""
    if response.ok:
        return ""
    try:
        return str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        return response.text
