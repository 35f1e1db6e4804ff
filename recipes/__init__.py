"""Recipes that ship with archlang."""
