"""One module per workload; see models/README.md for the contract."""
