"""Statistics of a sample of patterns. No files, no dataframes."""
