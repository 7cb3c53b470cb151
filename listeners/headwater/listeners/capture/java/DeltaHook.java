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
 * those the transaction's id is noted, which stands in the commit file as well, and the eye looks for it there.
 */
public final class DeltaHook {
    private static final String NAME = "headwater";
    private static ThreadLocal original;
    private static ThreadLocal ours;
    private static scala.Function1 originalCallback;
    private static scala.Function1 callback;
    /** By execution: transactions that committed a version nobody told. */
    private static final Pending PENDING = new Pending(1000);

    private DeltaHook() { }

    public static synchronized boolean isInstalled() { return ours != null; }

    /** Takes, for these executions, what has to be looked up: the log, the version that was read, the transaction's id. */
    static List pending(List executions) { return PENDING.take(executions); }

    private static void later(OptimisticTransaction txn) {
        PENDING.add(Facts.execution(), new Object[] {txn.deltaLog(), Long.valueOf(txn.readVersion()), txn.txnId()});
    }

    public static synchronized void install() throws Exception {
        if (ours != null) return;
        Class hook = PostCommitHook.class;
        probe(OptimisticTransaction.class, "registerPostCommitHook", new Class[] {hook});
        probe(OptimisticTransaction.class, "executionObserver_$eq", new Class[] {TransactionExecutionObserver.class});
        final ThreadLocal before = TransactionExecutionObserver$.MODULE$.threadObserver();
        ThreadLocal after = ThreadLocal.withInitial(new Supplier() {
            public Object get() { return new Observer((TransactionExecutionObserver) before.get()); }
        });
        observers(after);
        original = before;
        ours = after;
        scans();
    }

    /** The original observers, unless somebody has replaced ours since. */
    public static synchronized void uninstall() throws Exception {
        if (ours != null && TransactionExecutionObserver$.MODULE$.threadObserver() == ours) observers(original);
        Field field = scanCallback();
        if (callback != null && field.get(PrepareDeltaScanBase$.MODULE$) == callback) field.set(PrepareDeltaScanBase$.MODULE$, originalCallback);
        ours = null;
        callback = null;
    }

    private static void observers(ThreadLocal observers) throws Exception {
        Object module = TransactionExecutionObserver$.MODULE$;
        String setter = "org$apache$spark$sql$delta$ThreadStorageExecutionObserver$_setter_$threadObserver_$eq";
        module.getClass().getMethod(setter, new Class[] {ThreadLocal.class}).invoke(module, new Object[] {observers});
    }

    private static void probe(Class owner, String method, Class[] parameters) throws Exception {
        owner.getMethod(method, parameters);
    }

    /** Delta calls this for each table that a plan scans, or whose statistics answer a query instead of a scan. */
    private static void scans() throws Exception {
        Field field = scanCallback();
        final scala.Function1 before = (scala.Function1) field.get(PrepareDeltaScanBase$.MODULE$);
        scala.Function1 after = new scala.runtime.AbstractFunction1() {
            public Object apply(Object generator) {
                scanned((DeltaScanGenerator) generator);
                return before == null ? scala.runtime.BoxedUnit.UNIT : before.apply(generator);
            }
        };
        field.set(PrepareDeltaScanBase$.MODULE$, after);
        originalCallback = before;
        callback = after;
    }

    private static Field scanCallback() throws Exception {
        Field field = Lazily.field(
            PrepareDeltaScanBase$.class, "org$apache$spark$sql$delta$stats$PrepareDeltaScanBase$$onGetDeltaScanGeneratorCallback");
        if (field == null) throw new NoSuchFieldException("onGetDeltaScanGeneratorCallback");
        return field;
    }

    static void scanned(DeltaScanGenerator generator) {
        try {
            String execution = Facts.execution();
            if (execution == null) return;
            org.apache.spark.sql.delta.Snapshot snapshot = generator.snapshotToScan();
            Json json = begun("scanned", snapshot.deltaLog()).entry("version", snapshot.version());
            json.entry("nested", !execution.equals(Facts.property("spark.sql.execution.root.id")));
            Facts.noteFor(execution, json.close());
        } catch (Throwable e) {
            Facts.FAILED.incrementAndGet();
        }
    }

    private static Json begun(String what, org.apache.spark.sql.delta.DeltaLog log) {
        return new Json().open().entry("hook", "delta").entry("did", what).entry("path", log.dataPath().toString());
    }

    private static Json committed(OptimisticTransaction txn) {
        Json json = begun("committed", txn.deltaLog()).entry("readVersion", txn.readVersion()).entry("txnId", txn.txnId());
        DeltaNotes.table((org.apache.spark.sql.catalyst.catalog.CatalogTable) Options.get(txn.catalogTable()), json);
        json.entry("life", txn.metadata().id());
        if (txn.metadata().partitionColumns().nonEmpty()) json.entry("overwrites", txn.spark().conf().get("spark.sql.sources.partitionOverwriteMode"));
        if (txn.newMetadata().isEmpty()) return json;
        DeltaNotes.metadata("metadata", txn.metadata(), json);
        if (txn.readVersion() >= 0) DeltaNotes.metadata("before", txn.snapshot().metadata(), json);
        return json;
    }

    /** Observes one thread, or one transaction of it. Nothing is kept from whoever observed before. */
    private static final class Observer implements TransactionExecutionObserver {
        private final TransactionExecutionObserver inner;
        private OptimisticTransaction transaction;
        private boolean told;

        Observer(TransactionExecutionObserver inner) { this.inner = inner; }

        public TransactionExecutionObserver createChild() {
            return new Observer((TransactionExecutionObserver) inner.createChild());
        }

        public OptimisticTransaction startingTransaction(scala.Function0 start) {
            OptimisticTransaction txn = inner.startingTransaction(start);
            if (Facts.listening()) watch(txn);
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
                Facts.FAILED.incrementAndGet();
            }
        }

        /** A proxy, because the hook's parameters aren't the same in all versions of Delta. */
        private PostCommitHook hook() {
            return (PostCommitHook) Proxy.newProxyInstance(
                Observer.class.getClassLoader(), new Class[] {PostCommitHook.class}, new InvocationHandler() {
                    public Object invoke(Object proxy, Method method, Object[] arguments) {
                        String name = method.getName();
                        if (name.equals("name")) return NAME;
                        if (name.equals("run")) ran(arguments);
                        if (name.equals("equals")) return Boolean.valueOf(proxy == arguments[0]);
                        if (name.equals("hashCode")) return Integer.valueOf(System.identityHashCode(proxy));
                        return name.equals("toString") ? NAME : null;
                    }
                });
        }

        private void ran(Object[] arguments) {
            Long version = null;
            for (int i = 0; i < arguments.length; i++) if (arguments[i] instanceof Long) version = (Long) arguments[i];
            if (version != null) tell(version);
        }

        /** Without a version, the eye finds it by the transaction's id. */
        private void tell(Long version) {
            OptimisticTransaction txn = transaction;
            if (txn == null || told) return;
            told = true;
            try {
                if (!Facts.listening()) return;
                Json json = committed(txn);
                if (version != null) json.entry("version", version);
                else later(txn);
                DeltaNotes.commitInfo(txn.commitInfo(), json);
                if (version == null && Facts.execution() == null)
                    Facts.noteLoose(new DeltaLoose(json.toString(), txn.deltaLog(), txn.readVersion(), txn.txnId()));
                else Facts.note(json.close());
            } catch (Throwable e) {
                Facts.FAILED.incrementAndGet();
            }
        }

        public void transactionCommitted() {
            tell(null);
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
