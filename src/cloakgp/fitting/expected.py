"""Expected table: rows without outputs, whose answers are as the prior expects them."""

from __future__ import annotations

from dataclasses import dataclass

from cloakgp.fitting.held import HeldTable, expected_measurement
from cloakgp.fitting.strategies import Budget
from cloakgp.fitting.table import Design
from cloakgp.release import DenseStrategy, Measurement, Strategy
from cloakgp.release.posterior.mixture import Inference


@dataclass(frozen=True, eq=False)
class ExpectedTable(HeldTable):
    """A table without outputs: answers are as the prior expects them, with the noise's sd."""

    inference: Inference = "posterior"

    def check_asks(self, strategy: Strategy) -> None:
        """Take what asks nothing: that is what is expected of such a budget."""

    def ask(
        self,
        design: Design,
        y: object,
        budget: Budget,
        *,
        after_answers: bool,
        insecure_seed: int | None,
    ) -> Measurement:
        """Return the answers that are expected. Nothing is asked, and nothing spent."""
        del y, after_answers, insecure_seed
        strategy = design.strategy
        assert isinstance(strategy, DenseStrategy)
        assert design.expected is not None
        values = strategy.matrix @ design.expected
        return expected_measurement(strategy, values, question=design.question, budget=budget)
