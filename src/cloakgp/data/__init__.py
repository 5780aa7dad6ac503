"""Tables in files: formats, columns, and cells, every one of which is read on its own.

Whatever size a table has, it is read here: a format splits files into columns of cells, and cells
become numbers or text. Nothing here keeps or shows a cell of the private column, and errors of the
libraries that read files, which may quote one, end here.
"""

from cloakgp.data.formats import format_of
from cloakgp.data.table_format import TableFormat

__all__ = ["TableFormat", "format_of"]
