"""Diagnose data that do not fit together, and read them with the class map that their boxes imply."""
