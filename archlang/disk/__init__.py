"""The one door to the disk: safe reading, atomic writing, limits, and the cache folder."""
