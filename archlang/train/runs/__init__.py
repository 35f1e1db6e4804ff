"""Runs: points, engines, tables and tuning. What a user can correct raises a RunError."""
