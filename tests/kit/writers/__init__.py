"""Writers as processes and in this one, and rounds of faults with a broker and a database behind proxies."""
