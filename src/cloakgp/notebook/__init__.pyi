from .budgets import choose_budget
from .predictions import explore

__all__ = ["choose_budget", "explore"]
