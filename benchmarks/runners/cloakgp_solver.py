"""cloakgp's `design_strategy` for a given cloaking matrix."""

from __future__ import annotations

import protocol

from cloakgp.design import design_strategy


def answer(arrays, options):
    """Return the strategy, and what it took."""
    design, cost = protocol.measured(
        lambda: design_strategy(arrays["C"], criterion=options["criterion"], gap=options["gap"]),
        repeats=options["repeats"],
    )
    found = {
        "settings": f"gap {options['gap']:g}, certified {design.certificate.gap:.1e}",
        "stated_scale": 1.0,
        **cost.report(),
    }
    return {"strategy": design.strategy}, found


if __name__ == "__main__":
    protocol.main(answer)
