"""Every tool that a protocol imitates, run on the same data and compared: ``make tools``."""
