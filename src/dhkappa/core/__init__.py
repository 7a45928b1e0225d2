"""Votes, labels and patterns as integer counts."""
