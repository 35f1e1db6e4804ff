"""A model as one file of plain torch code."""
