"""Slow, obvious, independent computations that boxscore must agree with."""
