package headwater.lens;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.LinkedHashSet;
import java.util.Set;
import org.apache.spark.sql.internal.SessionState;
import scala.runtime.AbstractFunction2;

/**
 * The parser of a new session, which puts the rule in when it is first used. No extension of Spark's comes before tables are looked
 * up, and an analyzer that isn't made yet can't be given a rule.
 */
final class ConsistentParsers extends AbstractFunction2 {
    private final ConsistentReads reads;

    ConsistentParsers(ConsistentReads reads) {
        this.reads = reads;
    }

    public Object apply(Object session, Object parser) {
        if (reads.isClosed()) return parser;
        ClassLoader loader = getClass().getClassLoader();
        return Proxy.newProxyInstance(loader, interfaces(parser, loader), new Parser(reads, session, parser));
    }

    /** All of them: Iceberg asks whether a parser is one of its own. */
    private static Class[] interfaces(Object parser, ClassLoader loader) {
        Set found = new LinkedHashSet();
        for (Class type = parser.getClass(); type != null; type = type.getSuperclass()) {
            Class[] each = type.getInterfaces();
            for (int i = 0; i < each.length; i++) if (isVisible(each[i], loader)) found.add(each[i]);
        }
        return (Class[]) found.toArray(new Class[0]);
    }

    private static boolean isVisible(Class type, ClassLoader loader) {
        try {
            return Modifier.isPublic(type.getModifiers()) && Class.forName(type.getName(), false, loader) == type;
        } catch (Throwable elsewhere) {
            return false;
        }
    }

    private static final class Parser implements InvocationHandler {
        private final ConsistentReads reads;
        private final Object session;
        private final Object parser;
        private volatile boolean isInstalled;

        Parser(ConsistentReads reads, Object session, Object parser) {
            this.reads = reads;
            this.session = session;
            this.parser = parser;
        }

        public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
            if (!isInstalled && !reads.isClosed() && method.getDeclaringClass() != Object.class) {
                isInstalled = ConsistentRelations.install(reads, (SessionState) Leaves.call(session, "sessionState"));
            }
            try {
                return method.invoke(parser, arguments);
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        }
    }
}
