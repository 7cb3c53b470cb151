"""What is installed: wheel, source distribution, layers between the packages, import weight, lock files, make."""
