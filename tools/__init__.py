"""What `make` runs: setting up, checking, locking, measuring. Standard library only, run from the checkout's root."""
