"""Published data sets: what they are, where their files come from, and how they are fetched, checked and read."""
