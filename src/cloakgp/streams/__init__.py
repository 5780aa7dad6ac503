"""Streams: a table that grows in time, asked period by period within a declared horizon."""
