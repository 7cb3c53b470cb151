"""EXISTS, however deep it stands."""

from __future__ import annotations

from sqlalchemy import ColumnElement, FromClause, exists, select


def there_is(*tables: FromClause, where: ColumnElement[bool]) -> ColumnElement[bool]:
    """A row of these. All other tables are those of the statements around it: left to itself, SQLAlchemy looks for them
    one statement further out, and not two.

    PostgreSQL asks it of each row that is left: made into a join, it takes "there is no better one" for something that
    nearly no row passes, and begins with a whole table.
    """
    found = select(1).select_from(*tables).where(where).suffix_with("OFFSET 0", dialect="postgresql")
    return exists(found.correlate_except(*tables))
