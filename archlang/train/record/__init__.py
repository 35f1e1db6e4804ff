"""Run folders on disk: records, checkpoints, trackers. What cannot be written or read raises a RunError."""
