"""Runs that are killed at a moment: before or after something that outlives the process."""

from __future__ import annotations

from contextlib import contextmanager

from cloakgp.utils.files import ReservedFile


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

    def around_writes(self, patch, *, of=None):
        """Reach a moment before and after each file that is reserved and written, if it counts."""
        write = ReservedFile.write

        def written(this, content, **settings):
            if of is not None and not of(this.path):
                return write(this, content, **settings)
            self.reach(f"before {this.path.name}")
            write(this, content, **settings)
            self.reach(f"after {this.path.name}")
            return None

        patch.setattr(ReservedFile, "write", written)

    def around_writing(self, patch, database, *, name, within=False):
        """Reach a moment before and after each transaction of a database, or within it, too."""
        writing = database.writing

        @contextmanager
        def wrote(this, **settings):
            self.reach(f"before {name}")
            with writing(this, **settings) as found:
                yield found
                if within:
                    self.reach(f"within {name}")
            self.reach(f"after {name}")

        patch.setattr(database, "writing", wrote)
