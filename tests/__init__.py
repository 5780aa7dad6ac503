"""Tests: a package, as any other that brings a folder of this name would hide it otherwise."""
