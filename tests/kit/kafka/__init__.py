"""A broker behind a proxy, drivers that tell it events, rounds of faults, and the check of what is on a topic."""
