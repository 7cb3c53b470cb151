"""Statements that write: what they read, what they made, and how the columns follow from each other."""
