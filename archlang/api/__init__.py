"""What Python does with a model besides calling it: opening runs, predicting, saving, loading and showing."""
