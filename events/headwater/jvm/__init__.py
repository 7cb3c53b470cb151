"""Our Java in a driver's JVM: from archives of class files where one fits exactly, else compiled there by Janino.

bundled     archives of class files: what one holds, and those that came with this wheel
cache       the archives that earlier drivers of this user compiled
loader      a JVM's loader for one package of ours
last_start  which of these the last driver used

It needs no pyspark: whoever has a py4j gateway can use it.
"""
