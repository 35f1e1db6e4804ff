"""Training and evaluation of one point of a recipe."""
