"""The set-up: everything the sandbox is made of, at pinned versions, in one cache folder.

Standard library only, because it runs before anything is installed. It owns the cache folder and `venv/`; it does not
start any of what it installs.
"""

from .commands import ToolchainError
from .locate import Tools, locate

__all__ = ["ToolchainError", "Tools", "locate"]
