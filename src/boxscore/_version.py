"""Hold the version in one place: the package, the wheel and every signature read it here."""

__version__ = "0.2.0"
