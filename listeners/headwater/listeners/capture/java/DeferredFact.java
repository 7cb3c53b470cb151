package headwater.capture;

/** A fact that is completed when it is taken, on a thread that may wait for a disk. */
interface DeferredFact {
    /** The whole of it, as JSON; null where it isn't time yet, which it always is when nothing comes after. Nothing is thrown. */
    String resolve(boolean isLast);
}
