package headwater.capture;

/** What Delta's hook shares with its extractor. */
final class DeltaState {
    static final HookState HOOK = new HookState(1000);

    private DeltaState() { }
}
