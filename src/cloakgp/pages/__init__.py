"""Pages of HTML that need nothing but themselves: a sheet about a release, and one that predicts."""
