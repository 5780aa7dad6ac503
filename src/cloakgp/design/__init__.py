"""Which questions to put to y: optimal designs with certificates. Sees public arrays only."""

from cloakgp.design.bayes import BayesDesign, design_bayes
from cloakgp.design.criteria import CriterionName
from cloakgp.design.solver import Progress
from cloakgp.design.strategy import Certificate, Design, design_strategy

__all__ = [
    "BayesDesign",
    "Certificate",
    "CriterionName",
    "Design",
    "Progress",
    "design_bayes",
    "design_strategy",
]
