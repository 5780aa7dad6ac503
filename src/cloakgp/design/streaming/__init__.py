"""Designs of many rows: strategies as rules over the features of a row, found in passes."""
