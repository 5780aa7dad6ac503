"""Tables of any size: in arrays, in files and on a Dask cluster, read cell by cell.

A format splits a file into columns of cells, and cells become numbers or text. Rows do the same
work on every chunk of a table and merge what comes of it in the order of the table, so that a
design needs the public inputs only (`cloakgp.utils.passes`), and a measurement sees the private
outputs of one chunk at a time. Nothing here keeps, shows or logs an output, and errors of the
libraries that read files, which may quote one, end here.

Public names are listed in `__init__.pyi`, and imported when they are first used: rows in arrays do
without what reads files.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
