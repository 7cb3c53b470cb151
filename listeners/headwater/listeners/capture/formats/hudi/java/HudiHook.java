package headwater.capture;

import java.lang.reflect.Field;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Function;
import org.apache.hudi.callback.HoodieWriteCommitCallback;
import org.apache.hudi.callback.common.HoodieWriteCommitCallbackMessage;
import org.apache.hudi.common.config.ConfigProperty;
import org.apache.hudi.common.config.HoodieConfig;
import org.apache.hudi.common.model.HoodieWriteStat;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.ReflectionUtils;
import org.apache.hudi.config.HoodieWriteCommitCallbackConfig;
import org.apache.hudi.config.HoodieWriteConfig;

/**
 * Notes each instant in the thread that commits it.
 *
 * Hudi makes its callback by name, from an option, in its own class loader. So the class is defined there, and is what
 * the options are inferred to be where nobody has set any of them: no table and no session ever has it, and a write that
 * sets one of them has its own callback, or none, instead of this one. Table services and DDL beside writes ask for no
 * callbacks.
 */
public final class HudiHook {
    private static final String NAME = "HeadwaterCommitCallback";
    private static final String METADATA = "/.hoodie/metadata";
    /** How we say true: users, and Hudi itself, write it otherwise. */
    private static final String OURS = "TRUE";
    private static final String SOURCE =
        "package org.apache.hudi.callback;\n"
        + "public final class " + NAME + " implements HoodieWriteCommitCallback {\n"
        + "    public static volatile java.util.function.BiConsumer sink;\n"
        + "    private final org.apache.hudi.config.HoodieWriteConfig config;\n"
        + "    public " + NAME + "(org.apache.hudi.config.HoodieWriteConfig config) { this.config = config; }\n"
        + "    public void call(org.apache.hudi.callback.common.HoodieWriteCommitCallbackMessage message) {\n"
        + "        java.util.function.BiConsumer to = sink;\n"
        + "        if (to != null) to.accept(config, message);\n"
        + "    }\n"
        + "}\n";
    private static Object originalSwitch;
    private static Object originalName;

    private HudiHook() { }

    public static synchronized void install() throws Exception {
        if (HudiState.HOOK.isInstalled) return;
        Class callback = ClassDefiner.define(HoodieWriteCommitCallback.class, NAME, SOURCE);
        final String name = callback.getName();
        if (ReflectionUtils.getClass(name) != callback) throw new IllegalStateException("Hudi finds another " + name);
        callback.getField("sink").set(null, new BiConsumer() {
            public void accept(Object config, Object message) { onCommit((HoodieWriteConfig) config, (HoodieWriteCommitCallbackMessage) message); }
        });
        Field inferred = inferred();
        originalSwitch = inferred.get(HoodieWriteCommitCallbackConfig.TURN_CALLBACK_ON);
        originalName = inferred.get(HoodieWriteCommitCallbackConfig.CALLBACK_CLASS_NAME);
        if (((Option) originalSwitch).isPresent() || ((Option) originalName).isPresent())
            throw new IllegalStateException("Hudi infers its callbacks by itself");
        infer(HoodieWriteCommitCallbackConfig.CALLBACK_CLASS_NAME, name, new Function() {
            public Object apply(Object config) { return isFree((HoodieConfig) config, "on", OURS) ? Option.of(name) : Option.empty(); }
        });
        infer(HoodieWriteCommitCallbackConfig.TURN_CALLBACK_ON, name, new Function() {
            public Object apply(Object config) { return isFree((HoodieConfig) config, "class", name) ? Option.of(OURS) : Option.empty(); }
        });
        HudiState.HOOK.installed();
    }

    public static synchronized void uninstall() throws Exception {
        if (!HudiState.HOOK.isInstalled) return;
        inferred().set(HoodieWriteCommitCallbackConfig.TURN_CALLBACK_ON, originalSwitch);
        inferred().set(HoodieWriteCommitCallbackConfig.CALLBACK_CLASS_NAME, originalName);
        ClassDefiner.define(HoodieWriteCommitCallback.class, NAME, SOURCE).getField("sink").set(null, null);
        HudiState.HOOK.uninstalled();
    }

    private static void infer(ConfigProperty option, String name, Function function) throws Exception {
        inferred().set(option, Option.of(function));
    }

    private static Field inferred() throws Exception {
        return LazyFields.field(ConfigProperty.class, "inferFunction");
    }

    /** Whether nobody has set this option, or only we have. Asked while a write is configured: nothing may be thrown. */
    private static boolean isFree(HoodieConfig config, String option, String ours) {
        try {
            String there = config.getProps().getProperty(HudiTargets.CALLBACK_OPTIONS + option);
            return there == null || there.equals(ours);
        } catch (Throwable e) {
            CaughtErrors.log("HudiHook.isFree", e);
            return false;
        }
    }

    /** On the committing thread, when the table services that come with the write have run too. */
    private static void onCommit(HoodieWriteConfig config, HoodieWriteCommitCallbackMessage message) {
        try {
            String path = message.getBasePath();
            if (!CommitRecorder.listening() || path.endsWith(METADATA)) return;
            HudiState.HOOK.markOwn(HudiTargets.key(path, message.getCommitTime()));
            HudiState.HOOK.later(CommitRecorder.execution(), path);
            Json json = new Json().open().entry("hook", "hudi").entry("path", path).entry("table", message.getTableName());
            json.entry("instant", message.getCommitTime()).entry("action", (String) message.getCommitActionType().orElse(null));
            if (config.inlineCompactionEnabled() || config.inlineLogCompactionEnabled() || config.inlineClusteringEnabled()) json.entry("services", true);
            counted(message.getHoodieWriteStat(), json);
            CommitRecorder.note(json.close());
        } catch (Throwable e) {
            CaughtErrors.report("HudiHook.onCommit", e);
        }
    }

    private static void counted(List stats, Json json) {
        long inserted = 0;
        long changed = 0;
        long bytes = 0;
        for (int i = 0; i < stats.size(); i++) {
            HoodieWriteStat stat = (HoodieWriteStat) stats.get(i);
            inserted += stat.getNumInserts();
            changed += stat.getNumUpdateWrites() + stat.getNumDeletes();
            bytes += stat.getTotalWriteBytes();
        }
        json.entry("inserted", inserted).entry("changed", changed).entry("bytes", bytes);
    }
}
