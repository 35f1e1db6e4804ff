"""Lowering: graphs as Python and modules of torch."""
