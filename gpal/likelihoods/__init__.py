"""p(y | f): one file per family of likelihoods."""
