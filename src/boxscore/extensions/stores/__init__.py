"""Open files in object stores and on the web, and the contents of compressed files and archives."""
