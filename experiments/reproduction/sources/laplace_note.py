"""The note on the Laplace mechanism."""

from __future__ import annotations

from experiments.reproduction.items import Cell, Computed, Item, Missing, Row, Said, Source

PROOF = Item(
    place="Definitions 1.1 to 1.3 and theorem 1",
    title="The Laplace mechanism keeps (ε, 0)",
    rows=(
        Row(
            "Lap(Δf/ε) on every answer, Δf in the ℓ1 norm",
            "theorem",
            Said(
                "cloakgp.privacy.noise.laplace, against OpenDP "
                "(tests/privacy/test_external_oracles.py)"
            ),
            Said("noise=“laplace” of every estimator and of the command line"),
        ),
    ),
)


def _noise(epsilon: str, noise: str) -> Cell:
    return Computed(f"laplace-noise-{epsilon}:{noise}", ".1f")


NO_FIGURE = Missing("the note prints no figure")
UTILITY = Item(
    place="“Type of noise, sensitivity, ε, δ”",
    title="Laplace or Gaussian noise: heights by age",
    leaves_open="No figure is printed. Here: untouched defaults, RMSE over 14 folds.",
    unit="RMSE, cm",
    rows=tuple(
        Row(f"ε = {epsilon}, {words}", "", NO_FIGURE, _noise(epsilon, noise))
        for epsilon in ("0.3", "1", "3")
        for noise, words in (
            ("Laplace, 0", "Laplace, δ = 0"),
            ("Gaussian, 1e-2", "Gaussian, δ = 10⁻²"),
            ("Gaussian, 1e-5", "Gaussian, δ = 10⁻⁵"),
        )
    ),
    remark="Laplace noise needs no δ, and is as good as Gaussian noise at δ = 10⁻⁵ or better; with "
    "δ = 10⁻² Gaussian noise wins.",
)

SOURCE = Source(
    name="Laplace note",
    reference="Note on the Laplace mechanism, after Dwork and Roth, The algorithmic foundations of "
    "differential privacy, 2014",
    items=(PROOF, UTILITY),
)
