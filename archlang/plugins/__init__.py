"""The Python files that a user trusts, and the classes in them."""

from archlang.plugins.mistakes import PluginError
from archlang.plugins.plugins import COPIES, NO_PLUGINS, Plugin, Plugins, failure_of, is_signal

__all__ = ["COPIES", "NO_PLUGINS", "Plugin", "PluginError", "Plugins", "failure_of", "is_signal"]
