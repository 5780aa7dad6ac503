"""Tables that need not fit in memory: rows that are gone through in passes, chunk by chunk.

Rows do the same work on every chunk and merge what comes of it in the order of the table, so that
designing needs their public inputs only (`cloakgp.passes`), and measuring sees the private outputs
of one chunk at a time. Nothing here keeps, shows or logs outputs.

Public names are listed in `__init__.pyi`: rows in arrays do without what reads files.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
