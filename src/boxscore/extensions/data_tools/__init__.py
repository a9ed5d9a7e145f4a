"""Convert, merge, sample, split and describe data sets."""
