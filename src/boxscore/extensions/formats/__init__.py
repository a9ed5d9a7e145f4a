"""Read and write the formats of annotation tools."""
