package headwater.lens;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;

/** By which names lineage and a lens may call the cluster of a bootstrap list: its logical name, and each address. */
public final class KafkaClusters {
    private static final String DEFAULT_PORT = "9092";

    private final List patterns = new ArrayList();
    private final List logicalNames = new ArrayList();
    private String driverHost = "";

    /** Addresses that match belong to the cluster with this logical name. */
    public void name(String addresses, String logical) {
        patterns.add(Pattern.compile(addresses, Pattern.CASE_INSENSITIVE));
        logicalNames.add(logical);
    }

    /** The name by which others know this machine, which calls itself localhost. */
    public void driverHost(String host) {
        driverHost = host;
    }

    /** Logical names first, then each `host:port`. */
    Set namesOf(String servers) {
        Set addresses = new TreeSet();
        String[] each = servers.split(",");
        for (int i = 0; i < each.length; i++) if (!each[i].trim().isEmpty()) addAddresses(each[i].trim(), addresses);
        Set names = new LinkedHashSet();
        for (Iterator all = addresses.iterator(); all.hasNext();) {
            String address = (String) all.next();
            for (int i = 0; i < patterns.size(); i++) if (((Pattern) patterns.get(i)).matcher(address).matches()) names.add(logicalNames.get(i));
        }
        names.addAll(addresses);
        return names;
    }

    private void addAddresses(String server, Set addresses) {
        String place = server.replaceFirst("^[A-Za-z0-9_+.-]*://", "").toLowerCase(Locale.ROOT);
        int colon = place.lastIndexOf(':');
        boolean hasPort = colon > place.lastIndexOf(']') && place.indexOf(':') == colon || place.indexOf("]:") > 0;
        String host = (hasPort ? place.substring(0, colon) : place).replaceFirst("\\.$", "");
        String port = ":" + (hasPort ? place.substring(colon + 1) : DEFAULT_PORT);
        addresses.add(host + port);
        if (!isLoopback(host) && !host.equals(driverHost)) return;
        addresses.add("localhost" + port);
        addresses.add("127.0.0.1" + port);
        if (!driverHost.isEmpty()) addresses.add(driverHost + port);
    }

    private static boolean isLoopback(String host) {
        return host.equals("localhost") || host.equals("localhost.localdomain") || host.equals("[::1]") || host.matches("127(\\.\\d{1,3}){3}");
    }
}
