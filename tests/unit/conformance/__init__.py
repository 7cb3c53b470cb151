"""The truth of scenarios agrees with their scripts; events are read tolerantly; datasets are told apart and found."""
