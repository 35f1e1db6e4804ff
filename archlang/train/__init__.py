"""Training: settings, the trainer of a run, its steps and its scores. What a user can correct raises a RunError.

`record` reads and writes run folders; `runs` makes, resumes, evaluates and compares runs.
"""
