"""Strategies for one training step."""
