"""Describe a table of your own, and look at it before anything is fitted."""
