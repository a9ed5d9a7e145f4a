"""The attack: files, options, signals and streams that mean harm, and what becomes of each."""
