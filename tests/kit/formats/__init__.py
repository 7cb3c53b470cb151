"""What the table formats' own files say, and writers that race into their tables."""
