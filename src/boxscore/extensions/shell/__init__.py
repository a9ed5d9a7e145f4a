"""Write shell completion, run configurations, list formats and protocols, and share code of commands."""
