"""What a pairwise network is as a distribution, exactly where its states can be enumerated."""
