"""Laws that hold for all inputs, tried with generated ones: merging, codecs, redaction, identities, the journal.

A law says in its first line what holds. How many examples it gets is `effort.examples`: few in `make check`, more in
`make test`, most in the slices.
"""
