"""A watch at the door: who reads outputs, and by which function of which file."""

from __future__ import annotations

import inspect
import sys
import traceback

import numpy as np
import pytest

from cloakgp.privacy.ask import ask

# Within its wrappers, which everything that reads outputs has.
DOOR = (inspect.unwrap(ask).__code__.co_filename, "ask")


class Watched:
    """Outputs that notice who looks."""

    def __init__(self, outputs):
        self._outputs = outputs
        self.stacks = []

    def _look(self):
        frames = traceback.extract_stack()
        self.stacks.append([(frame.filename, frame.name) for frame in frames])
        return self._outputs

    def __array__(self, dtype=None, copy=None):
        del copy
        return np.asarray(self._look(), dtype=dtype)

    def __len__(self):
        return len(self._look())

    def __iter__(self):
        return iter(self._look())

    def __getitem__(self, place):
        return self._look()[place]


@pytest.fixture
def check_door(monkeypatch):
    """Fit a model, and check that `cloakgp.privacy.ask.ask` alone looks at what it is given."""

    def check(model, X, y):
        given = []

        def watching(strategy, outputs, **rest):
            given.append(outputs)
            return ask(strategy, outputs, **rest)

        for name, module in list(sys.modules.items()):
            if name.startswith("cloakgp.") and vars(module).get("ask") is ask:
                monkeypatch.setattr(module, "ask", watching)
        outputs = Watched(y)
        model.fit(X, outputs)
        assert len(given) == 1
        assert given[0] is outputs
        assert outputs.stacks
        assert all(DOOR in stack for stack in outputs.stacks)

    return check
