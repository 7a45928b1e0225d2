"""Results as something to read: terminal, HTML, CSV."""
