package headwater.capture;

import java.lang.invoke.MethodHandles;

/** Defines a class of ours beside one of a library's: in its package and its loader, where the library looks by name. */
final class ClassDefiner {
    private ClassDefiner() { }

    /** The class of this name in the package of `near`, made of `source` unless it is there already. */
    static Class define(Class near, String name, String source) throws Exception {
        String full = near.getPackage().getName() + "." + name;
        ClassLoader loader = near.getClassLoader();
        try {
            return Class.forName(full, true, loader);
        } catch (ClassNotFoundException notYet) {
            org.codehaus.janino.SimpleCompiler compiler = new org.codehaus.janino.SimpleCompiler();
            compiler.setParentClassLoader(loader);
            compiler.cook(source);
            byte[] bytes = (byte[]) compiler.getBytecodes().get(full);
            return MethodHandles.privateLookupIn(near, MethodHandles.lookup()).defineClass(bytes);
        }
    }
}
