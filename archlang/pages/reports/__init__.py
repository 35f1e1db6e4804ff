"""Reports about runs and tables."""
