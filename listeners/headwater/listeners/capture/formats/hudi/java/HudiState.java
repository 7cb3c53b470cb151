package headwater.capture;

/** What Hudi's hook shares with its extractor. */
final class HudiState {
    static final HookState HOOK = new HookState(1000);

    private HudiState() { }
}
