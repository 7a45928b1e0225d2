"""What comes in, turned into a Tally of integers. No floating point on this floor."""
