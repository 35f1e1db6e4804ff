"""The standard library: a file of signatures for each concept, with its arithmetic beside it."""
