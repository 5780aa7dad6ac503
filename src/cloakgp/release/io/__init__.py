"""Release files: bounded reading, checksums, and how every kind of release is written down."""
