"""Figures of releases: predictions with their intervals beside what is public."""
