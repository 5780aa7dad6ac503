"""The talk of 2017: with and without inducing inputs."""

from __future__ import annotations

import pytest

from cloakgp.models import rkhs
from cloakgp.privacy.accounting import exact_noise_multiplier
from experiments import kung2018, talk
from experiments.cloaking import PAPERS_NOISE
from experiments.cross_validation import Protocol
from experiments.datasets import DatasetUnavailableError


@pytest.mark.data
def test_with_the_2018_papers_settings_the_talks_errors_come_out(women):
    """Not those of two inputs with inducing inputs, whose number the talk does not print."""
    found = talk.kung_errors(women, settings=talk.SETTINGS[:1], protocol=Protocol())
    for one in found:
        without, inducing = talk.PUBLISHED[one.inputs]
        name = PAPERS_NOISE.name
        assert one.without[name].mean == pytest.approx(without.mean, rel=0.03)
        assert one.inducing[name].mean == pytest.approx(inducing.mean, rel=0.2)
        assert one.inducing[name].mean < 0.75 * one.without[name].mean


@pytest.mark.data
def test_inducing_inputs_lower_a_whole_functions_sensitivity(women):
    exact, few, many = talk.function_noises(women, counts=(5, 20))
    X = women[["age"]].to_numpy(dtype=float)
    closed = 100 * rkhs.rkhs_sensitivity(kung2018.prior_for(X), X) * kung2018.UNIT
    assert exact.sd == pytest.approx(closed * exact_noise_multiplier(1.0, 0.01))
    assert few.sd < 0.5 * exact.sd
    assert many.sd == pytest.approx(exact.sd, rel=1e-2)
    (halved, *_) = talk.function_noises(women, counts=(), epsilon=100.0)
    assert halved.sd < exact.sd / 10


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.usefixtures("women")
def test_the_command_prints_and_draws(tmp_path, capsys):
    try:
        talk.Talk(**talk.Talk.small).run(output_dir=tmp_path)
    except DatasetUnavailableError as error:
        pytest.skip(str(error))
    printed = capsys.readouterr().out
    assert "22.8 ± 1.9" in printed
    assert "20 inducing inputs" in printed
    for name in ("kung", "london"):
        assert (tmp_path / f"talk-{name}.png").stat().st_size > 20_000
