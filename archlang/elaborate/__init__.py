"""Elaboration: from a resolved definition and its statics to a typed graph."""
