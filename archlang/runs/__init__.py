"""Runs: points, engines, tables and tuning."""
