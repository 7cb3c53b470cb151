"""What `make` runs: setting up, checking, locking, measuring. The standard library only, run from the checkout's root."""
