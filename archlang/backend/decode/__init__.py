"""Decoding: a model writes its answer token by token."""
