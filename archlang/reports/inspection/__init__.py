"""Inspection of a trained model on one input."""
