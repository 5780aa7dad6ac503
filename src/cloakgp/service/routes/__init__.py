"""Routes: thin routers over operations; a route has the name of its operation."""
