"""Numbers, shown to people. Computes nothing."""
