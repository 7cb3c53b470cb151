"""`headwater writer run`: the process that fills a store.

command      its flags, which way events take into the store, and how it begins and ends
config_file  its flags in a file
"""
