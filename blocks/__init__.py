"""The standard library: files of signatures, and for each concept a Python file with its classes."""
