"""Compare two results files of one model box by box, and name the likely cause of the differences."""
