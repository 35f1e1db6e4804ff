"""Support for editors; its syntax files are written from the patterns of the package."""
