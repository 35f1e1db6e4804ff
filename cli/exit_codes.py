"""The exit codes of commands that fail, as docs/exit-codes.md lists them."""

import signal

MISTAKE = 1
"""of the user: a file, a setting or the data is wrong"""
BUG = 70
"""of archlang"""
MACHINE = 71
"""memory, disk, permissions, devices, the network"""
INTERRUPTED = 128 + signal.SIGINT
CLOSED_PIPE = 141
