"""Instance masks: overlaps and boundaries, and suppression by them."""
