"""The public kit for those who build on headwater: strategies for events, and contract suites for what plugs in."""
