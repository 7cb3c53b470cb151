"""Types and changes of columns: written short, and generated for laws."""
