"""What a command does, from a catalog to a folder of results."""
