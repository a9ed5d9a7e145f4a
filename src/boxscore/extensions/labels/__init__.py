"""The quality of labels: agreement of annotators, suspects, what an edit of a label changes."""
