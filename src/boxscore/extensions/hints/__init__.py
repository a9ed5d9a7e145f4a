"""Say what is likely wrong with data that does not fit, and read it by the class map that its boxes show."""
