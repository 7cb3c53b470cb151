"""How the package is meant to be used, as both type checkers have to accept or refuse it. Nothing here is run."""
