"""Random numbers, threads, memory, and arrays of any library."""
