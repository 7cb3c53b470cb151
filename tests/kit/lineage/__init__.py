"""Stories of what happened with the answers found by hand, and databases for stores: backups, views, readers."""
