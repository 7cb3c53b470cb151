package headwater.capture;

/** What Iceberg's hooks share with its extractor. */
final class IcebergState {
    static final HookState HOOK = new HookState(10000);
    static final HookState PROCEDURES = new HookState(0);

    private IcebergState() { }
}
