package headwater.capture;

/** What Paimon's hook shares with its extractor. */
final class PaimonState {
    static final HookState HOOK = new HookState(1000);

    private PaimonState() { }
}
