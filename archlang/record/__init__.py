"""Run folders on disk: records, checkpoints, trackers."""
