package headwater.capture;

import java.util.HashMap;
import java.util.Map;

/** Names that Spark makes of expressions carry ids that differ from run to run; a user's names may look like them. */
public final class GeneratedNamesTest {
    private final GeneratedNames names = new GeneratedNames();
    private final Map numbers = new HashMap();

    public GeneratedNamesTest() {
        names.number(Long.valueOf(6), "v");
        numbers.put(Long.valueOf(6), Integer.valueOf(0));
    }

    public void testExpressions() throws Exception {
        Tests.equal("max(v#0)", names.stable("max(v#6)", numbers));
        Tests.equal("sum(v#0L)", names.stable("sum(v#6L)", numbers));
        Tests.equal("scalar-subquery# []", names.stable("scalar-subquery#7 []", numbers));
    }

    public void testUsersNames() throws Exception {
        Tests.equal("order#6", names.stable("order#6", numbers));
        Tests.equal("f(order#6)", names.stable("f(order#6)", numbers));
        Tests.equal("f(v#7)", names.stable("f(v#7)", numbers));
        Tests.equal("f(v#12345678901234567890)", names.stable("f(v#12345678901234567890)", numbers));
        Tests.equal("cost($1)#", names.stable("cost($1)#", numbers));
    }
}
