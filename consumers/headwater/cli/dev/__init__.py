"""`headwater dev`: broker, database and writer together on this machine, without Docker.

home          the directory: what runs there, as a file says it, and a lock that one supervisor holds
supervisor    the process that starts all, watches over them, and stops them
writer_server the writer as one more server
up, down, status     what a person does
java_home     a Java that the installed Spark starts on
instructions  what is printed: how to configure Spark, and how to ask the store
"""
