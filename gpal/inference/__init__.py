"""q(f): the site engine, full or sparse, and the gradient path."""
