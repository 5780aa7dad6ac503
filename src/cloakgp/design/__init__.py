"""Optimal designs with certificates: which questions to put to y. Sees public arrays only."""

from cloakgp.design.bayes import BayesDesign, design_bayes
from cloakgp.design.l1_ball import design_l1
from cloakgp.design.l1_strategy import design_strategy_l1
from cloakgp.design.row_noise import PublicCovariances, RowNoiseDesign, design_row_noise
from cloakgp.design.solver import Progress
from cloakgp.design.strategy import Certificate, Design, DesignGapWarning, design_strategy
from cloakgp.utils.names import CriterionName

__all__ = [
    "BayesDesign",
    "Certificate",
    "CriterionName",
    "Design",
    "DesignGapWarning",
    "Progress",
    "PublicCovariances",
    "RowNoiseDesign",
    "design_bayes",
    "design_l1",
    "design_row_noise",
    "design_strategy",
    "design_strategy_l1",
]
