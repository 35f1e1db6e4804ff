"""What an editor asks about a program as it is written: mistakes, types, names, and where they are. Needs no torch."""
