"""Our Java in a driver's JVM: from archives of class files where one fits exactly, else compiled there by Janino.

sources   Java sources that are kept in one archive
archives  what such a file holds
bundled   the archives that came with this wheel, and which versions they are for
cache     the archives that earlier drivers of this user compiled
loader    a JVM's loader for one package of ours

It needs no pyspark: whoever has a py4j gateway can use it.
"""
