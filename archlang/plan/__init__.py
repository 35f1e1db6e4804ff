"""Planning: from recipes, tables and searches to the points that have to be run."""
