"""Broker, database and writer together on this machine: `headwater up`, `down`, `status`.

home      the directory: what runs there, as a file says it, and a lock that one keeper holds
keeper    the process that starts all, watches over them, and stops them
writer    `headwater write` as one more server
up, down, status     what a person does
telling   what is printed: how Spark is told, and how the store is asked
"""
