"""Pages of HTML that need nothing else: a sheet about a release, and one that predicts."""
