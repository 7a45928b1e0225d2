"""A Tally, turned into numbers. No dataframe and no file on this floor."""
