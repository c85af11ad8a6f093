"""Any table file into an astropy Table: FITS, VOTable, ECSV, CSV, Parquet; one file per format.

What a format can show of damage is looked at: checksums, counts of fields, types, encodings. Cells
that cannot be what their column says are kept as the words they are, so that a column that nobody
uses may hold anything; whoever takes numbers or names from a column (gpal.catalog.columns) refuses
them by row.
"""

from gpal.catalog.readers.blocks import row_count, table_blocks
from gpal.catalog.readers.fits import fits_table_header
from gpal.catalog.readers.sample import read_sample
from gpal.catalog.readers.table import FORMATS, read_table, table_format

__all__ = [
    "FORMATS",
    "fits_table_header",
    "read_sample",
    "read_table",
    "row_count",
    "table_blocks",
    "table_format",
]
