"""Open files in object stores and on the web, and what compressed files and archives hold."""
