"""Routes of operations for programs; a route has the name of its operation."""
