"""Files that are written atomically."""
