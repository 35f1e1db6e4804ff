"""The recipes that are shipped."""
