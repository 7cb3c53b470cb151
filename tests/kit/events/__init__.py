"""Events for tests: mixtures, many, mutated, and written by hand."""
