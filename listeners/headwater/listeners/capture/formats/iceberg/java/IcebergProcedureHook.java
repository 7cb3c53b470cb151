package headwater.capture;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.iceberg.spark.procedures.SparkProcedures;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.LocalScan;

/**
 * Stands around Iceberg's procedures where Spark has some of its own kind, which it calls while it analyses: nothing of
 * Spark's shows that there was a call. Iceberg makes its procedures by a map of suppliers; while installed, each gives
 * what it gave before, with a proxy in front that hands every call on and notes those of the procedure itself.
 */
public final class IcebergProcedureHook implements InvocationHandler {
    private static final String OF_SPARK = "org.apache.spark.sql.connector.catalog.procedures.BoundProcedure";
    /** By entry of Iceberg's map: the supplier that was there. */
    private static final Map REPLACED = new HashMap();
    private final Object behind;

    private IcebergProcedureHook(Object behind) { this.behind = behind; }

    /** Does nothing where procedures are called within executions: on Spark 3.5. */
    public static synchronized void install() throws Exception {
        if (!areCalledInAnalysis() || !REPLACED.isEmpty()) return;
        Map suppliers = (Map) LazyFields.field(SparkProcedures.class, "BUILDERS").get(null);
        try {
            for (Iterator i = suppliers.entrySet().iterator(); i.hasNext();) {
                Map.Entry entry = (Map.Entry) i.next();
                Supplier ours = watched((Supplier) entry.getValue());
                LazyFields.field(entry.getClass(), "value").set(entry, ours);
                REPLACED.put(entry, ((Around) ours).before);
                if (suppliers.get(entry.getKey()) != ours) throw new IllegalStateException("procedures are made in an unknown way");
            }
        } catch (Exception e) {
            uninstall();
            throw e;
        }
        IcebergState.PROCEDURES.isInstalled = !REPLACED.isEmpty();
    }

    public static synchronized void uninstall() throws Exception {
        for (Iterator i = REPLACED.entrySet().iterator(); i.hasNext();) {
            Map.Entry replaced = (Map.Entry) i.next();
            LazyFields.field(replaced.getKey().getClass(), "value").set(replaced.getKey(), replaced.getValue());
        }
        REPLACED.clear();
        IcebergState.PROCEDURES.isInstalled = false;
    }

    private static boolean areCalledInAnalysis() {
        try {
            Class.forName(OF_SPARK, false, SparkProcedures.class.getClassLoader());
            return true;
        } catch (ClassNotFoundException e) {
            return false;
        }
    }

    private static Supplier watched(Supplier before) { return new Around(before); }

    /** A supplier of Iceberg's, whose builders make procedures that are watched. */
    private static final class Around implements Supplier {
        final Supplier before;

        Around(Supplier before) { this.before = before; }

        public Object get() { return inFrontOf(before.get()); }
    }

    /** What does all that the object does; the object itself where that can't be made. */
    private static Object inFrontOf(Object behind) {
        try {
            Set kinds = new LinkedHashSet();
            for (Class at = behind.getClass(); at != null; at = at.getSuperclass())
                for (int i = 0; i < at.getInterfaces().length; i++) kinds.add(at.getInterfaces()[i]);
            Class[] all = (Class[]) kinds.toArray(new Class[0]);
            return Proxy.newProxyInstance(behind.getClass().getClassLoader(), all, new IcebergProcedureHook(behind));
        } catch (Throwable e) {
            CaughtErrors.report("IcebergProcedureHook.inFrontOf", e);
            return behind;
        }
    }

    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
        String name = method.getName();
        int count = arguments == null ? 0 : arguments.length;
        if (name.equals("equals") && count == 1) return Boolean.valueOf(isSame(arguments[0]));
        if (name.equals("call") && count == 1 && arguments[0] instanceof InternalRow) return called(method, arguments);
        Object found = invoked(method, arguments);
        if (found == behind) return proxy;
        return name.equals("build") || name.equals("bind") || name.equals("withTableCatalog") ? inFrontOf(found) : found;
    }

    /** Analysis compares plans until nothing changes any more. */
    private boolean isSame(Object other) {
        if (other == null || !Proxy.isProxyClass(other.getClass())) return behind.equals(other);
        Object handler = Proxy.getInvocationHandler(other);
        return handler instanceof IcebergProcedureHook && behind.equals(((IcebergProcedureHook) handler).behind);
    }

    private Object invoked(Method method, Object[] arguments) throws Throwable {
        try {
            return method.invoke(behind, arguments);
        } catch (InvocationTargetException e) {
            throw e.getTargetException();
        }
    }

    private Object called(Method method, Object[] arguments) throws Throwable {
        ProcedureCall call = ProcedureCall.begin(behind, (InternalRow) arguments[0]);
        if (call == null) return invoked(method, arguments);
        List scans = new ArrayList();
        try {
            for (Iterator each = (Iterator) invoked(method, arguments); each.hasNext();) scans.add(each.next());
        } catch (Throwable e) {
            answered(call, scans);
            call.end(e);
            throw e;
        }
        answered(call, scans);
        call.end(null);
        return scans.iterator();
    }

    /** What the call is about, and its answer; one that failed may have committed, too. */
    private static void answered(ProcedureCall call, List scans) {
        try {
            call.target = IcebergCalls.target(call, call.statement.session);
            for (int i = 0; i < scans.size() && call.schema == null; i++) {
                if (!(scans.get(i) instanceof LocalScan)) continue;
                LocalScan scan = (LocalScan) scans.get(i);
                call.schema = scan.readSchema();
                call.rows.addAll(java.util.Arrays.asList((Object[]) scan.rows()));
            }
        } catch (Throwable e) {
            CaughtErrors.report("IcebergProcedureHook.answered", e);
        }
    }
}
