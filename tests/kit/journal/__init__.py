"""Faults at each system call of a journal, and readers and writers of a local log that are killed."""
