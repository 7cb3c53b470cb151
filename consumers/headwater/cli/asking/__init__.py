"""Commands that ask the store and give a table: jobs, runs, tables, gaps, names, history, late, uses."""
