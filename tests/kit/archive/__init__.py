"""Records as a bus has them, and topics of them, for tests of the archive."""
