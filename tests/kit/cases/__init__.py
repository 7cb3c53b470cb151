"""Tables and ways to read and write them that several modules of statements share."""
