"""Scopes, imports, statics."""
