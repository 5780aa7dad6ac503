"""The papers' tables and figures, computed again: ``python -m experiments kung``.

Unlike the rest of the package, these modules hold outputs and compare predictions with them: the
tables are public and historical, and an error cannot be had without the truth. Nothing that they
print is private.
"""
