"""Releases in plain words: measurements, promises and their limits."""
