"""Anything a user passes, turned into counts."""
