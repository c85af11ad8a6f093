"""A labelling campaign: the durable history of questions, labels and models in a folder."""
