"""What was measured, as tables, pages and pictures."""
