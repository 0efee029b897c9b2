"""What the end-to-end tests and the benchmark stand on: a daemon, a client, an audit."""
