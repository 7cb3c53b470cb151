package headwater.capture;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;

/** A format that asks its listener for more than we know of goes on as if nobody listened. */
public final class ProxyDefaultsTest {
    private final Asked proxy = (Asked) Proxy.newProxyInstance(Asked.class.getClassLoader(), new Class[] {Asked.class}, new InvocationHandler() {
        public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable { return ProxyDefaults.answer(proxy, method, arguments); }
    });

    public void testPrimitives() throws Exception {
        Tests.equal(0, proxy.number());
        Tests.equal(false, proxy.flag());
        Tests.equal(0.0d, proxy.share());
        proxy.nothing();
    }

    public void testObjects() throws Exception {
        Tests.equal(null, proxy.text());
        Tests.equal(scala.Option.empty(), proxy.option());
        Tests.isTrue("it equals itself alone", proxy.equals(proxy) && !proxy.equals("another"));
        Tests.equal(System.identityHashCode(proxy), proxy.hashCode());
        Tests.equal(proxy.getClass().getName(), proxy.toString());
    }

    public interface Asked {
        int number();
        boolean flag();
        double share();
        void nothing();
        String text();
        scala.Option option();
    }
}
