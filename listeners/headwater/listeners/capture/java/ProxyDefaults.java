package headwater.capture;

import java.lang.invoke.MethodHandles;
import java.lang.reflect.Method;

/**
 * What a proxy in front of nothing answers where it has no answer of its own: as an object that does nothing would.
 *
 * A library that has moved on asks for more than we know of, in the thread of a user who has committed already. Nothing
 * of it may fail there: null in the place of a primitive value would.
 */
public final class ProxyDefaults {
    private ProxyDefaults() { }

    /** The interface's own answer, or else a value of the method's type that stands for nothing. */
    public static Object answer(Object proxy, Method method, Object[] arguments) throws Throwable {
        String name = method.getName();
        if (method.getDeclaringClass() == Object.class) {
            if (name.equals("equals")) return Boolean.valueOf(proxy == arguments[0]);
            if (name.equals("hashCode")) return Integer.valueOf(System.identityHashCode(proxy));
            return proxy.getClass().getName();
        }
        return method.isDefault() ? standard(proxy, method, arguments) : nothing(method.getReturnType());
    }

    private static Object standard(Object proxy, Method method, Object[] arguments) throws Throwable {
        Class owner = method.getDeclaringClass();
        java.lang.invoke.MethodHandle own = MethodHandles.privateLookupIn(owner, MethodHandles.lookup()).unreflectSpecial(method, owner);
        return own.bindTo(proxy).invokeWithArguments(arguments == null ? new Object[0] : arguments);
    }

    private static Object nothing(Class type) {
        if (type == scala.Option.class) return scala.Option.empty();
        if (!type.isPrimitive() || type == Void.TYPE) return null;
        return java.lang.reflect.Array.get(java.lang.reflect.Array.newInstance(type, 1), 0);
    }
}
