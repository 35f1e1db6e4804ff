"""Published data sets: their registry, and how their files are fetched, verified and read."""
