"""What does the work behind the ports: files, indexes, embedders."""
