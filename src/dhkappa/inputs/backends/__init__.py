"""What differs between dataframe libraries, engines and databases."""
