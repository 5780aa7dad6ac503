from .coordinator import Coordinator
from .errors import CustodiansError, WaitingError
from .exchange import FolderExchange, MemoryExchange
from .plan import Plan
from .simulation import simulate
from .site import Site

__all__ = [
    "Coordinator",
    "CustodiansError",
    "FolderExchange",
    "MemoryExchange",
    "Plan",
    "Site",
    "WaitingError",
    "simulate",
]
