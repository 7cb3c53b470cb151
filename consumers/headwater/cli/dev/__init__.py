"""`headwater dev`: broker, database and writer together on this machine, without Docker.

home          the directory: what runs there, as a file says it, and a lock that one supervisor holds
supervisor    the process that starts all, the writer too, watches over them, and stops them
up, down, status     what a person does
java_home     a Java that the installed Spark starts on
"""
