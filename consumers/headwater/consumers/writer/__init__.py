"""From the bus into the store.

reading   records become rows, and those that can't, dead letters
plain     poll, decode, rows, merge: the reference, and the way for SQLite
routes    which stores an event's rows go to, where there are several
routed    the plain pipeline into several
calls     what of an event a store of the first interface can be told
calling   telling it that
patience  waiting for what is away, and saying so
mirror    dead letters on a topic, too
coordinated   several connections at once
vitals    how a writer is: what probes and Prometheus ask
serving   and where they ask it
accounts  what became of a batch, counted and told
upkeep    what a store needs once a day
running   a writer's life: waiting where waiting helps, stopping when it is told to
"""
