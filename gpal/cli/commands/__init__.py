"""The commands of `gpal`: a file each, found by walking this folder."""

ORDER = ("catalogs", "classify", "predict", "validate", "report", "learn")
