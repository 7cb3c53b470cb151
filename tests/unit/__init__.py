"""One function, class or module of ours, mostly without a server: a folder for each room, tests in milliseconds."""
