"""The fitted model: how it is made from settings and data, what it says, and its file."""
