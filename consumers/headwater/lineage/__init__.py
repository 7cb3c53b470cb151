"""The lineage store and the questions asked of it."""
