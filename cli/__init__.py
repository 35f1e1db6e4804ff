"""The commands of `archlang`."""
