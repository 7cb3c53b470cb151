"""What pytest loads for these tests: tiers and slices, forks, quarantine."""
