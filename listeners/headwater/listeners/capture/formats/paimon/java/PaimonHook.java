package headwater.capture;

import java.lang.reflect.Field;
import java.util.List;
import java.util.function.BiConsumer;
import org.apache.paimon.CoreOptions;
import org.apache.paimon.Snapshot;
import org.apache.paimon.manifest.FileKind;
import org.apache.paimon.manifest.ManifestEntry;
import org.apache.paimon.table.sink.CommitCallback;

/**
 * Notes each snapshot in the thread that commits it.
 *
 * Paimon makes its callbacks by name, from an option, in its own class loader. So the class is defined there, and the
 * option's default is what names it: no table and no session ever has it, and a table or session that sets the option
 * itself has its own callbacks instead of this one. What truncates, drops partitions or analyzes asks for no callbacks.
 */
public final class PaimonHook {
    private static final String NAME = "HeadwaterCommitCallback";
    private static final String SOURCE =
        "package org.apache.paimon.table.sink;\n"
        + "public final class " + NAME + " implements CommitCallback {\n"
        + "    public static volatile java.util.function.BiConsumer sink;\n"
        + "    public " + NAME + "() { }\n"
        + "    public void call(java.util.List entries, org.apache.paimon.Snapshot snapshot) {\n"
        + "        java.util.function.BiConsumer to = sink;\n"
        + "        if (to != null) to.accept(entries, snapshot);\n"
        + "    }\n"
        + "    public void retry(org.apache.paimon.manifest.ManifestCommittable committable) { }\n"
        + "    public void close() { }\n"
        + "}\n";
    private static Object original;

    private PaimonHook() { }

    public static synchronized void install() throws Exception {
        if (PaimonState.HOOK.isInstalled) return;
        Class callback = callback();
        callback.getField("sink").set(null, new BiConsumer() {
            public void accept(Object entries, Object snapshot) { onCommit((List) entries, (Snapshot) snapshot); }
        });
        Field standard = standard();
        Object before = standard.get(CoreOptions.COMMIT_CALLBACKS);
        if (before != null && !before.equals("") && !before.equals(callback.getName()))
            throw new IllegalStateException("commit.callbacks has a default of its own: " + before);
        standard.set(CoreOptions.COMMIT_CALLBACKS, callback.getName());
        original = before == null || before.equals(callback.getName()) ? "" : before;
        PaimonState.HOOK.installed();
    }

    public static synchronized void uninstall() throws Exception {
        if (!PaimonState.HOOK.isInstalled) return;
        standard().set(CoreOptions.COMMIT_CALLBACKS, original);
        callback().getField("sink").set(null, null);
        PaimonState.HOOK.uninstalled();
    }

    /** On the committing thread. */
    private static void onCommit(List entries, Snapshot snapshot) {
        try {
            if (!CommitRecorder.listening()) return;
            PaimonState.HOOK.markOwn(snapshot.commitUser());
            Json json = new Json().open().entry("hook", "paimon");
            PaimonSnapshots.entries(snapshot, json);
            added(entries, json);
            CommitRecorder.note(json.close());
        } catch (Throwable e) {
            CaughtErrors.report("PaimonHook.onCommit", e);
        }
    }

    private static void added(List entries, Json json) {
        long rows = 0;
        long bytes = 0;
        long files = 0;
        for (int i = 0; i < entries.size(); i++) {
            ManifestEntry entry = (ManifestEntry) entries.get(i);
            if (entry.kind() != FileKind.ADD) continue;
            rows += entry.file().rowCount();
            bytes += entry.file().fileSize();
            files++;
        }
        json.entry("rows", rows).entry("bytes", bytes).entry("files", files);
    }

    private static Field standard() throws Exception {
        return LazyFields.field(CoreOptions.COMMIT_CALLBACKS.getClass(), "defaultValue");
    }

    /** Our callback in Paimon's package and loader. */
    private static Class callback() throws Exception { return ClassDefiner.define(CommitCallback.class, NAME, SOURCE); }
}
