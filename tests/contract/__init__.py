"""What every implementation of an interface promises: listeners, publishers, stores, in memory and on real servers.

The suites are in `headwater.testing`, so that authors of plug-ins can use them; here they meet our implementations. A
new promise of an interface goes to its suite, a new implementation gets a module here.
"""
