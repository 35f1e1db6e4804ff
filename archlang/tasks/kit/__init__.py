"""Helpers that several tasks share."""
