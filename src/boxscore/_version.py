"""Define the version for the package, the wheel and every signature."""

__version__ = "0.2.0"
