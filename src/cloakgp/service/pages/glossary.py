"""Glossary of the pages, in plain language."""

from __future__ import annotations

# In the order in which readers meet them.
GLOSSARY: tuple[tuple[str, str], ...] = (
    (
        "Private column",
        "The one protected column of a table: an income, a diagnosis, a duration. It must not "
        "reveal the value of a single person. It is read once for every release, and never shown.",
    ),
    (
        "Public columns",
        "The inputs of predictions, such as age or place. They are not protected: a release holds "
        "them, or sums of them, in the open.",
    ),
    (
        "Release",
        "A small file from which everyone can predict the private column, with its uncertainty, as "
        "often as they like. Its making spends privacy; its use does not.",
    ),
    (
        "ε (epsilon)",
        "The loss of privacy by one release. No result of it is more than e^ε times as likely for "
        "one value of a person as for another: 1.65 times at ε = 0.5, 2.72 times at ε = 1. Smaller "
        "is more private, and less exact.",
    ),
    (
        "δ (delta)",
        "The chance that the promise of ε fails. It should be far less than one over the number of "
        "people. At 0 the promise never fails, which takes another kind of noise.",
    ),
    (
        "A guess",
        "An attacker who knows everything except one person's value, and wavers between two, is "
        "right half of the time by tossing a coin. The plan states the largest share of right "
        "guesses with the release in hand.",
    ),
    (
        "Budget, or account",
        "Each release spends some privacy of the same people, and these costs add up for ever. An "
        "account adds them up for one group of people, and refuses a release beyond its limit "
        "before anything is read. The limit holds in every order of requests, also where an "
        "analyst reads one release before choosing the budget of the next.",
    ),
    (
        "Used, reserved, left",
        "Used is the share of the limit that releases have cost. Reserved is the share that "
        "approved requests may still cost. Left is the largest ε of one more release. The used "
        "share is no ε: the limit alone is a promise about all releases together.",
    ),
    (
        "Unit",
        "The protected unit of a guarantee: one row, or one person with all of their rows.",
    ),
    (
        "Bounds",
        "The lowest and the highest possible private value, from knowledge without a look at the "
        "table: the scale of an instrument, a legal cap. Values beyond a bound are moved to it. "
        "Wider bounds need more noise. Never take the smallest and the largest value of the table: "
        "these belong to two people.",
    ),
    (
        "Plan",
        "A forecast of a release from public columns alone: its error, its public parts, and its "
        "time and memory. It spends nothing, so plan as often as you like.",
    ),
    (
        "Four eyes",
        "Above a threshold another person must approve a request before anything is spent; the "
        "requester cannot approve it.",
    ),
    (
        "Share",
        "The largest budget of all requests of one analyst, within the limit of the account.",
    ),
    (
        "Drawing",
        "The moment in which the private column is read and noise is added. Until then a job can "
        "be cancelled, and costs nothing. From then on its cost is spent.",
    ),
    (
        "Ledger",
        "The list of all reservations, charges and refunds. Entries are only added; the seal of "
        "each covers all before it, so that verification finds a change, a gap or a return to an "
        "older copy.",
    ),
    (
        "Receipt",
        "A signed statement of the cost of one release, which can be checked elsewhere.",
    ),
    (
        "Interval of 95 %",
        "The range that holds the true value with 95 % probability, if the assumptions hold. One "
        "interval is for people like this on average, and a wider one for a single new person.",
    ),
)
ROLES: tuple[tuple[str, str], ...] = (
    ("custodian", "holds the data: adds tables, sets limits and rules, cancels jobs."),
    ("approver", "says yes or no to requests of others above the threshold."),
    ("analyst", "plans, requests releases within a share, and predicts."),
    ("reader", "reads releases and predicts from them."),
    ("auditor", "reads the ledger and the audit trail, and verifies the ledger; sees no data."),
    ("administrator", "adds people, gives roles and tokens; sees no data."),
)
