"""Mutation testing: changes of the code that the tests must notice."""
