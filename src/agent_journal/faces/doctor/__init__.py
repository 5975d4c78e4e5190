"""What `doctor` looks at and tries: machine, journal, model, server and hosts."""
