"""Weights in and out: models of Hugging Face as pages of the language, and back."""
