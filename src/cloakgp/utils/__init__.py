"""Arrays, files, names and numbers as text: helpers for every folder."""
