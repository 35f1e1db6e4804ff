"""The standard library: for each concept a file of signatures and a Python file with its classes."""
