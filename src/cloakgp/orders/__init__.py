"""Orders: what somebody asks of a table, in options, and how that is planned and done."""
