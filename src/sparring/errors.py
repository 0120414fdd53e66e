"""The one error that is meant for the person at the keyboard."""

from __future__ import annotations


class SparringError(Exception):
    """What was wrong, where, and how to mend it, in one line.

    The command line prints the message to stderr and exits with code 2; Python callers may catch it.
    """
