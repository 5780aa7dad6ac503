"""Runs that are killed at a moment: before or after something that outlives the process."""

from __future__ import annotations


class KilledError(BaseException):
    """The process is no more."""


class Moments:
    """The moments of runs, at one of which they end.

    A subclass says by `patch` what reaches a moment.
    """

    def __init__(self, patch, *, last=None):
        self.names = []
        self.last, self.dead = last, False
        self.patch(patch)

    def reach(self, name):
        if self.dead:
            raise KilledError
        self.names.append(name)
        if self.last == len(self.names) - 1:
            self.dead = True
            raise KilledError

    def patch(self, patch):
        raise NotImplementedError
