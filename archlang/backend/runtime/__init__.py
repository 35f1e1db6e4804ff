"""What compiled models run on: loops, masks, halting, recording."""
