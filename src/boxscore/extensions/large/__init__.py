"""Data larger than memory or than one machine: partitions, shards, parts, workers, Dask."""
