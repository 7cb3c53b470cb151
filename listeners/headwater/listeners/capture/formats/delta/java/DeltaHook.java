package headwater.capture;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.TransactionExecutionObserver;
import org.apache.spark.sql.delta.TransactionExecutionObserver$;
import org.apache.spark.sql.delta.hooks.PostCommitHook;
import org.apache.spark.sql.delta.stats.DeltaScanGenerator;
import org.apache.spark.sql.delta.stats.PrepareDeltaScanBase$;

/**
 * Notes each version that a thread commits, and each that a scan is prepared at.
 *
 * Every transaction is observed. Most run post-commit hooks, which know the version. RESTORE and CLONE run none: of
 * those the transaction's id is noted, which stands in the commit file as well, and the extractor looks for it there.
 */
public final class DeltaHook {
    private static final String NAME = "headwater";
    private static ThreadLocal original;
    private static ThreadLocal ours;
    private static scala.Function1 originalCallback;
    private static scala.Function1 callback;

    private DeltaHook() { }

    /** What has to be looked up of a transaction whose version nobody tells: the log, the version that was read, its id. */
    private static void later(OptimisticTransaction txn) {
        DeltaState.HOOK.later(CommitRecorder.execution(), new Object[] {txn.deltaLog(), Long.valueOf(txn.readVersion()), txn.txnId()});
    }

    public static synchronized void install() throws Exception {
        if (ours != null) return;
        Class hook = PostCommitHook.class;
        OptimisticTransaction.class.getMethod("registerPostCommitHook", new Class[] {hook});
        OptimisticTransaction.class.getMethod("executionObserver_$eq", new Class[] {TransactionExecutionObserver.class});
        final ThreadLocal before = TransactionExecutionObserver$.MODULE$.threadObserver();
        ThreadLocal after = ThreadLocal.withInitial(new Supplier() {
            public Object get() { return new Observer((TransactionExecutionObserver) before.get()); }
        });
        observers(after);
        original = before;
        ours = after;
        scans();
        DeltaState.HOOK.installed();
    }

    /** The original observers, unless somebody has replaced ours since. */
    public static synchronized void uninstall() throws Exception {
        if (ours != null && TransactionExecutionObserver$.MODULE$.threadObserver() == ours) observers(original);
        Field field = scanCallback();
        if (callback != null && field.get(PrepareDeltaScanBase$.MODULE$) == callback) field.set(PrepareDeltaScanBase$.MODULE$, originalCallback);
        ours = null;
        callback = null;
        DeltaState.HOOK.uninstalled();
    }

    private static void observers(ThreadLocal observers) throws Exception {
        Object module = TransactionExecutionObserver$.MODULE$;
        String setter = "org$apache$spark$sql$delta$ThreadStorageExecutionObserver$_setter_$threadObserver_$eq";
        module.getClass().getMethod(setter, new Class[] {ThreadLocal.class}).invoke(module, new Object[] {observers});
    }

    /** Delta calls this for each table that a plan scans, or whose statistics answer a query instead of a scan. */
    private static void scans() throws Exception {
        Field field = scanCallback();
        final scala.Function1 before = (scala.Function1) field.get(PrepareDeltaScanBase$.MODULE$);
        scala.Function1 after = new scala.runtime.AbstractFunction1() {
            public Object apply(Object generator) {
                onScan((DeltaScanGenerator) generator);
                return before == null ? scala.runtime.BoxedUnit.UNIT : before.apply(generator);
            }
        };
        field.set(PrepareDeltaScanBase$.MODULE$, after);
        originalCallback = before;
        callback = after;
    }

    private static Field scanCallback() throws Exception {
        return LazyFields.field(
            PrepareDeltaScanBase$.class, "org$apache$spark$sql$delta$stats$PrepareDeltaScanBase$$onGetDeltaScanGeneratorCallback");
    }

    static void onScan(DeltaScanGenerator generator) {
        try {
            String execution = CommitRecorder.execution();
            if (execution == null) return;
            org.apache.spark.sql.delta.Snapshot snapshot = generator.snapshotToScan();
            Json json = startJson("scanned", snapshot.deltaLog()).entry("version", snapshot.version());
            String root = CommitRecorder.property("spark.sql.execution.root.id");
            json.entry("nested", !execution.equals(root) && CommitRecorder.isRunning(root));
            CommitRecorder.noteFor(execution, json.close());
        } catch (Throwable e) {
            CaughtErrors.report("DeltaHook.onScan", e);
        }
    }

    private static Json startJson(String what, org.apache.spark.sql.delta.DeltaLog log) {
        return new Json().open().entry("hook", "delta").entry("action", what).entry("path", log.dataPath().toString());
    }

    private static Json onCommit(OptimisticTransaction txn) {
        Json json = startJson("committed", txn.deltaLog()).entry("readVersion", txn.readVersion()).entry("txnId", txn.txnId());
        DeltaActionWriter.table((org.apache.spark.sql.catalyst.catalog.CatalogTable) ScalaOptions.get(txn.catalogTable()), json);
        json.entry("generation", txn.metadata().id());
        if (txn.metadata().partitionColumns().nonEmpty()) json.entry("overwrites", txn.spark().conf().get("spark.sql.sources.partitionOverwriteMode"));
        if (txn.newMetadata().isEmpty()) return json;
        DeltaActionWriter.metadata("metadata", txn.metadata(), json);
        if (txn.readVersion() >= 0) DeltaActionWriter.metadata("before", txn.snapshot().metadata(), json);
        return json;
    }

    /** Observes one thread, or one transaction of it. Nothing is kept from whoever observed before. */
    private static final class Observer implements TransactionExecutionObserver {
        private final TransactionExecutionObserver inner;
        private OptimisticTransaction transaction;
        private boolean known;

        Observer(TransactionExecutionObserver inner) { this.inner = inner; }

        public TransactionExecutionObserver createChild() {
            return new Observer((TransactionExecutionObserver) inner.createChild());
        }

        public OptimisticTransaction startingTransaction(scala.Function0 start) {
            OptimisticTransaction txn = inner.startingTransaction(start);
            if (CommitRecorder.listening()) watch(txn);
            return txn;
        }

        /** The thread's observer, which all its transactions share, gives way to one of the transaction's own. */
        private void watch(OptimisticTransaction txn) {
            try {
                if (txn.executionObserver() != this) return;
                Observer own = new Observer(inner);
                own.transaction = txn;
                txn.executionObserver_$eq(own);
                txn.registerPostCommitHook(own.hook());
            } catch (Throwable e) {
                CaughtErrors.report("DeltaHook.watch", e);
            }
        }

        /** A proxy, because the hook's parameters aren't the same in all versions of Delta. */
        private PostCommitHook hook() {
            return (PostCommitHook) Proxy.newProxyInstance(
                Observer.class.getClassLoader(), new Class[] {PostCommitHook.class}, new InvocationHandler() {
                    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
                        String name = method.getName();
                        if (name.equals("name") || name.equals("toString")) return NAME;
                        if (!name.equals("run")) return ProxyDefaults.answer(proxy, method, arguments);
                        ran(arguments);
                        return null;
                    }
                });
        }

        /** What fails behind it, another hook say, is reported to no observer: so this is where the commit is known. */
        private void ran(Object[] arguments) {
            Long version = null;
            for (int i = 0; version == null && arguments != null && i < arguments.length; i++) version = versionIn(arguments[i]);
            if (version != null) noteCommit(version);
        }

        /** The version itself, or that of Delta 4's CommittedTransaction. */
        private Long versionIn(Object argument) {
            if (argument == null || argument instanceof Long) return (Long) argument;
            if (!argument.getClass().getSimpleName().equals("CommittedTransaction")) return null;
            try {
                return (Long) argument.getClass().getMethod("committedVersion", new Class[0]).invoke(argument, new Object[0]);
            } catch (Exception e) {
                CaughtErrors.report("DeltaHook.versionIn", e);
                return null;
            }
        }

        /** Without a version, the extractor finds it by the transaction's id. */
        private void noteCommit(Long version) {
            OptimisticTransaction txn = transaction;
            if (txn == null || known) return;
            known = true;
            try {
                if (!CommitRecorder.listening()) return;
                Json json = onCommit(txn);
                if (version != null) json.entry("version", version);
                else later(txn);
                DeltaActionWriter.commitInfo(txn.commitInfo(), json);
                if (version == null && CommitRecorder.execution() == null)
                    CommitRecorder.noteOutsideExecution(new DeltaOutsideCommit(json.toString(), txn.deltaLog(), txn.readVersion(), txn.txnId()));
                else CommitRecorder.note(json.close());
            } catch (Throwable e) {
                CaughtErrors.report("DeltaHook.noteCommit", e);
            }
        }

        public void transactionCommitted() {
            noteCommit(null);
            transaction = null;
            inner.transactionCommitted();
        }

        public void transactionAborted() {
            transaction = null;
            inner.transactionAborted();
        }

        public Object preparingCommit(scala.Function0 commit) { return inner.preparingCommit(commit); }
        public void beginDoCommit() { inner.beginDoCommit(); }
        public void beginBackfill() { inner.beginBackfill(); }
        public void beginPostCommit() { inner.beginPostCommit(); }
        public scala.Option nextObserver() { return inner.nextObserver(); }
        public void nextObserver_$eq(scala.Option next) { inner.nextObserver_$eq(next); }
        public void setNextObserver(Object next) { inner.nextObserver_$eq(new scala.Some(next)); }
        public void advanceToNextThreadObserver() { inner.advanceToNextThreadObserver(); }
    }
}
