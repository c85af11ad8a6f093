"""The commands of `gpal`: a file each, found by walking this folder."""

ORDER = ("catalogs", "schema", "classify", "predict", "validate", "compare", "report", "learn")
