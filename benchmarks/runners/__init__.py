"""Scripts that other packages' interpreters run, and how they talk."""
