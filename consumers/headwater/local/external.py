"""A server that somebody else runs, at an address from the environment."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from typing_extensions import Self

from headwater.local.errors import AddressError, NotOursError
from headwater.local.service import ServerOrigin

_PATIENCE_SECONDS = 10.0
_POLL_SECONDS = 0.2


class ExternalService:
    """Checks that the server answers, uses it and leaves it running. Whoever shares it has to use topic names of their
    own."""

    def __init__(self, name: str, variable: str, address: str, fault: Callable[[str], str | None]) -> None:
        self.name = name
        self.address = address
        self.origin = ServerOrigin.ENVIRONMENT
        self._variable = variable
        self._fault = fault

    @property
    def running(self) -> bool:
        """See Service."""
        return self._fault(self.address) is None

    def start(self) -> Self:
        """See Service."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while (wrong := self._fault(self.address)) is not None:
            if time.monotonic() > deadline:
                raise AddressError(
                    f"nothing usable answers at the address in {self._variable}: {wrong}. Start that server, or unset "
                    f"{self._variable} to have one started here"
                )
            time.sleep(_POLL_SECONDS)
        return self

    def kill(self) -> None:
        """See Service."""
        raise self._not_ours("killed")

    def restart(self) -> None:
        """See Service."""
        raise self._not_ours("restarted")

    def stop(self) -> None:
        """See Service."""

    def log_tail(self, lines: int = 40) -> str:  # noqa: ARG002 -- the protocol's
        """See Service."""
        return ""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _not_ours(self, what: str) -> NotOursError:
        return NotOursError(
            f"{self.name} can't be {what} from here: {self._variable} names a server that somebody else runs. "
            f"Unset {self._variable} to have one started here"
        )
