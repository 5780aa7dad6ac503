"""What in the papers does not hold, each with the tests that show it."""

from __future__ import annotations

from experiments.reproduction.items import Computed, Unsound

HERE = "tests/experiments/reproduction/test_unsound.py"
SELECTION = "tests/experiments/test_selection_papers.py"
ACCOUNTING = "tests/privacy/test_accounting.py"

UNSOUND: tuple[Unsound, ...] = (
    Unsound(
        place="2021, equation 13; 2018 supplement",
        claim="One output changes the cross-validated squared errors by at most 9d² + Σ d² "
        "max‖c‖².",
        finding="A prediction that moves by a changes a squared distance D² by up to 2Da + a². No "
        "choice by it is private as claimed. In units of d², moved and claimed:",
        tests=(
            f"{SELECTION}::test_the_papers_bound_is_no_bound",
            f"{SELECTION}::test_the_papers_choice_breaks_its_promise_where_ours_keeps_it",
            f"{SELECTION}::test_neighbours_move_a_fold_of_the_women_beyond_its_term",
        ),
        measured=(
            Computed("four-points:moved", ".0f", label="moved"),
            Computed("four-points:claimed", ".0f", label="claimed"),
        ),
    ),
    Unsound(
        place="2018, figure 1A; the talk",
        claim="√(2 ln(2/δ))/ε keeps (ε, δ) at ε = 50 and ε = 100.",
        finding="It is proved for ε ≤ 1. With a tight sensitivity it keeps nothing at ε = 50; the "
        "figure is private only because its bound b(K⁻¹) is nearly nine times too large.",
        tests=(
            f"{ACCOUNTING}::test_papers_formula_beyond_one_is_not_private_as_claimed",
            "tests/experiments/test_functional.py::test_the_papers_scale_and_what_it_is_worth",
        ),
        measured=(
            Computed("function-claims:tight delta at 50", ".5f", label="δ at ε = 50, if tight"),
        ),
    ),
    Unsound(
        place="2021, section 2.2",
        claim="A count needs Gaussian noise of variance at least 1.77² for (1, 0.01).",
        finding="The cited theorem bounds the sd, σ ≥ cΔ/ε, and not the variance. What 1.77 keeps:",
        tests=(
            "tests/experiments/test_background.py::"
            "test_the_papers_count_is_not_private_as_stated_and_what_it_cites_is",
        ),
        measured=(Computed("background:count, published, delta", ".4f", label="δ at ε = 1"),),
    ),
    Unsound(
        place="2018, equations 6, 7, 9 and algorithm 2",
        claim="‖d M^(-½) c‖ = d² cᵀM⁻¹c, and the noise is scaled by it.",
        finding="The right side is the square of the left. Scaled by it, noise is too small "
        "wherever the descent ends with Δ < 1, and too large where it ends above.",
        tests=(f"{HERE}::test_noise_scaled_by_the_squared_distance_breaks_its_promise",),
    ),
    Unsound(
        place="2018 supplement, algorithm 1",
        claim="Δ = d² b(K⁻¹)², and the noise is Δ d c(δ)/ε.",
        finding="Cubic in d: the same release in metres and in centimetres gets other noise. "
        "Equation 1 and the printed scale have d b(K⁻¹) c(δ)/ε.",
        tests=(f"{HERE}::test_algorithm_1_depends_on_the_unit",),
    ),
    Unsound(
        place="2018 supplement, equation 11",
        claim="Σ(α − α') ≤ Δ_y b(J⁻¹) is suggested for the protection of inputs.",
        finding="It bounds a change of outputs. Where an input moves and no output does, its right "
        "side is 0 and α moves.",
        tests=(
            "tests/privacy/test_varah.py::test_equation_11_holds_for_outputs_and_fails_for_inputs",
        ),
    ),
    Unsound(
        place="2018: normalisation",
        claim="Outputs are rectified to ±50 cm of their mean, or of the middle of their range, and "
        "less their mean over their sd.",
        finding="Mean, sd and window are functions of the private outputs, released without noise: "
        "one height moves the window of all.",
        tests=(f"{HERE}::test_the_papers_window_moves_with_one_height",),
    ),
    Unsound(
        place="2018, section 4: binning",
        claim="Bins without rows are set to the population mean.",
        finding="The paper does not say that this mean has noise. Without, predictions there tell "
        "neighbours apart for certain.",
        tests=(f"{HERE}::test_empty_bins_tell_the_mean",),
    ),
    Unsound(
        place="2021, section 4",
        claim="W = −π(1 − π), and B = K + W^½ K W^½.",
        finding="Two misprints: W = +π(1 − π) and B = I + W^½ K W^½. As printed the update is not "
        "Newton's; with these it gives the paper's figures.",
        tests=(f"{HERE}::test_the_printed_newton_step_is_not_newtons",),
    ),
    Unsound(
        place="2021, section 6.7",
        claim="Heights are predicted from age, and errors are of the half that did not choose.",
        finding="The published figures are of weight, and of the half that chose; dropping 34 of "
        "80 configurations before choosing does nearly all of the work.",
        tests=(
            f"{SELECTION}::test_46_of_80_stay_and_the_claimed_sensitivities",
            f"{SELECTION}::test_table_2_beside_the_authors_code",
        ),
        measured=(
            Computed(
                "section-6-7-weight:papers, any of the 46 not dropped, same",
                ".1f",
                label="cm, any of the 46",
            ),
            Computed(
                "section-6-7-weight:papers, algorithm 1, notebook, same",
                ".1f",
                label="cm, chosen among them",
            ),
        ),
    ),
)
