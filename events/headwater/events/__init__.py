"""What happened: typed, immutable events, the identity of what they speak of, and their wire form."""
