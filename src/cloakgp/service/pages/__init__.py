"""Pages for people: HTML on the same operations as the routes of programs."""
