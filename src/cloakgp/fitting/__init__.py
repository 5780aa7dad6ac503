"""One private fit as a function: defaults, checks, questions, one measurement, one release."""
