"""What a network of pairs is as a distribution, exactly where its states can be enumerated."""
