"""`headwater writer run`: the process that fills a store.

command      its flags, and how it begins and ends
config_file  its flags in a file
pipelines    which way events take into the store
logs         its log
"""
