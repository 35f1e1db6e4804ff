"""The runtime of compiled models: loops, masks, halting, recording."""
