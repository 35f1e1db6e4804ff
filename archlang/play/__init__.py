"""The playground: a page in which one writes programs, and what answers it."""
