"""Glossary: the words of the pages, in plain language."""

from __future__ import annotations

# In the order in which people meet them.
GLOSSARY: tuple[tuple[str, str], ...] = (
    (
        "Private column",
        "The one column of a table that nobody shall learn about any single person: an income, a "
        "diagnosis, a duration. It is read once for every release, and never shown.",
    ),
    (
        "Public columns",
        "The columns that predictions start from, such as age or place. They are not protected: "
        "a release holds them, or sums of them, in the open.",
    ),
    (
        "Release",
        "A small file from which anybody can predict the private column, with its uncertainty, as "
        "often as they like. Making it spends privacy; using it does not.",
    ),
    (
        "ε (epsilon)",
        "How much one release may tell about one person. Whatever anybody does with it, no result "
        "is more than e^ε times as likely for one value of a person as for another: 1.65 times at "
        "ε = 0.5, 2.72 times at ε = 1. Smaller is more private, and less exact.",
    ),
    (
        "δ (delta)",
        "How often the promise of ε may fail. It should be far less than one over the number of "
        "people. At 0 the promise never fails, which takes another kind of noise.",
    ),
    (
        "A guess",
        "Somebody who knows everything but one person's value, and wavers between two, is right "
        "half of the time by tossing a coin. The plan says how often they are right at most with "
        "the release in hand.",
    ),
    (
        "Budget, or account",
        "Each release spends some privacy of the same people, and what is spent adds up for ever. "
        "An account remembers the sum for one group of people, and refuses what would go beyond "
        "its limit, before anything is read.",
    ),
    (
        "Spent, reserved, left",
        "Spent is what releases have cost. Reserved is what requests may still cost that wait or "
        "are being made. Left is the largest ε for which one more release would fit. These three "
        "need not add up to the limit: small amounts add up to less than their sum.",
    ),
    (
        "Unit",
        "Whom a guarantee is about: one row, or one person with all of their rows.",
    ),
    (
        "Bounds",
        "Between which two numbers a private value can lie, known without looking at the table: "
        "the scale of an instrument, a legal cap. Values beyond are moved to the bound. The wider "
        "they are, the more noise is needed. Never the smallest and largest value of the table: "
        "these are two people's.",
    ),
    (
        "Plan",
        "What a release would be worth, make public and take, from public columns alone. It spends "
        "nothing, so plan as often as you like.",
    ),
    (
        "Four eyes",
        "Above a threshold somebody else must approve a request before anything is spent, and "
        "nobody approves their own.",
    ),
    (
        "Share",
        "The most that one analyst's requests may add up to, within the limit of all.",
    ),
    (
        "Drawing",
        "The moment in which the private column is read and noise is added. Until then a job can "
        "be cancelled, and costs nothing. From then on what was drawn is spent.",
    ),
    (
        "Ledger",
        "The list of all that was ever reserved, spent and given back. Entries are only added; "
        "each is sealed with all before it, so that a change, a gap or a return to an older copy "
        "is found when it is verified.",
    ),
    (
        "Receipt",
        "A signed statement of what one release cost, which can be checked elsewhere.",
    ),
    (
        "Interval of 95 %",
        "Where the true value is expected with 95 % probability, if what was assumed beforehand "
        "holds. One interval is for people like this on average, and a wider one for a single new "
        "person.",
    ),
)
ROLES: tuple[tuple[str, str], ...] = (
    ("custodian", "holds the data: adds tables, sets limits and rules, cancels jobs."),
    ("approver", "says yes or no to what others request above the threshold."),
    ("analyst", "plans, requests releases within a share, and predicts."),
    ("reader", "reads releases and predicts from them."),
    ("auditor", "reads the ledger and what was done, and verifies both; sees no data."),
    ("administrator", "adds people, gives roles and tokens; sees no data."),
)
