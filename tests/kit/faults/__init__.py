"""What goes wrong: a network of its own weather, full disks, drivers that hang, memory that is measured."""
