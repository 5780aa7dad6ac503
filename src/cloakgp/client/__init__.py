"""Client of the service, by httpx."""
