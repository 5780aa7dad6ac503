"""Arrays, files, names and numbers as text: what every folder may use, and needs none of them."""
