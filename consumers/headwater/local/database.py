"""What PostgreSQL and MariaDB share: SQLAlchemy URLs, and asking whether a server answers."""

from __future__ import annotations

from sqlalchemy import URL, create_engine, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from headwater.local.errors import MissingRequirementError

USER = "headwater"


def url_text(url: URL) -> str:
    """Return the URL as a client needs it, its password included."""
    return url.render_as_string(hide_password=False)


def query_fault(url: str, query: str = "SELECT 1", expected: object = 1) -> str | None:
    """Run a query over a connection of its own; return None if it gave what was expected, else what is wrong."""
    try:
        engine = create_engine(url, poolclass=NullPool, connect_args={"connect_timeout": 2})
    except ModuleNotFoundError as error:
        raise MissingRequirementError(
            f"the driver {error.name} isn't installed: pip install 'headwater[postgres]' or 'headwater[mysql]'"
        ) from error
    except ArgumentError as error:
        return str(error)
    try:
        with engine.connect() as connection:
            found = connection.execute(text(query)).scalar_one()
    except SQLAlchemyError as error:
        return str(error.__cause__ or error).strip()
    finally:
        engine.dispose()
    return None if found == expected else f"another server answers there ({found!r} instead of {expected!r})"
