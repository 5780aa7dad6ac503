"""Measurements of cloakgp beside other packages: ``python -m benchmarks --help``."""
