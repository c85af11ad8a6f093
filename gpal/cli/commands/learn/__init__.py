"""Which sources to look at next: campaigns that last, and studies of how well they work."""

ORDER = ("simulate", "start", "next", "label", "undo", "status", "export", "refit", "merge")
