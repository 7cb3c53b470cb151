"""A file of bytes and JSON for each kind and version of event. Files are only added: old bytes have to be readable."""
