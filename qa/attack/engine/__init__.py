"""What every attack with mutants shares: hostile values, trees that are spoilt, children, verdicts."""
