"""Releases in plain words: what was measured, what is promised, and what is not."""
