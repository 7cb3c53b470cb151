package headwater.capture;

import java.util.ArrayList;
import java.util.List;
import org.apache.paimon.Snapshot;
import org.apache.paimon.fs.Path;
import org.apache.paimon.schema.SchemaManager;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.utils.SnapshotManager;

/** Looks for snapshots in a table's own files, from the newest back to what can't be the statement's any more. */
public final class PaimonSnapshots {
    private static final int MOST = 2000;
    /** So many in a row that are older than the statement end the search: another host's clock may be slow. */
    private static final int PATIENCE = 16;
    private static final int NEWEST = 8;
    private static final long LONG_AGO = 3600000L;

    private final List found = new ArrayList();
    private boolean complete = true;
    private boolean older;

    private PaimonSnapshots() { }

    public static void entries(Snapshot snapshot, Json json) {
        json.entry("snapshot", snapshot.id()).entry("user", snapshot.commitUser()).entry("kind", snapshot.commitKind().name());
        json.entry("schema", snapshot.schemaId()).entry("time", snapshot.timeMillis());
        json.entry("total", snapshot.totalRecordCount()).entry("delta", snapshot.deltaRecordCount());
    }

    /** What this user committed. With `thorough`, also what may have followed its first commit but for a compaction. */
    public static PaimonSnapshots of(String user, FileStoreTable table, long since, boolean thorough) {
        PaimonSnapshots search = new PaimonSnapshots();
        search.go(table, user, null, since, Long.MAX_VALUE, !thorough);
        return search;
    }

    /** What was committed in that time, in the kind's word, by nobody whom a hook here has seen. */
    public static PaimonSnapshots within(long since, long until, String kind, FileStoreTable table) {
        PaimonSnapshots search = new PaimonSnapshots();
        search.go(table, null, kind, since, until, false);
        return search;
    }

    /**
     * Where a scan gave nothing, only time tells which snapshot it was of: the newest ones, each with its time, and when
     * the table last said which is the newest.
     */
    public static void newest(FileStoreTable table, Json json) {
        Json newest = new Json().openList();
        long changed = 0;
        try {
            SnapshotManager manager = table.snapshotManager();
            Long latest = manager.latestSnapshotId();
            Path hint = new Path(manager.snapshotDirectory(), SnapshotManager.LATEST);
            if (latest != null) changed = table.fileIO().getFileStatus(hint).getModificationTime();
            for (long id = latest == null ? 0 : latest.longValue(), n = 0; id > 0 && n < NEWEST; id--, n++) {
                Snapshot snapshot = manager.snapshot(id);
                newest.open().entry("snapshot", id).entry("time", snapshot.timeMillis());
                newest.entry("own", PaimonState.HOOK.isOwn(snapshot.commitUser())).close();
                if (snapshot.timeMillis() < System.currentTimeMillis() - LONG_AGO) break;
            }
            if (!isStillThere(table)) return;
        } catch (Throwable missing) {
            CaughtErrors.reportUnforeseen("PaimonSnapshots.newest", missing);
            return;
        }
        json.key("newest").raw(newest.closeList().toString()).entry("changed", changed);
    }

    private void go(FileStoreTable table, String user, String kind, long since, long until, boolean first) {
        SnapshotManager manager = table.snapshotManager();
        Long latest = manager.latestSnapshotId();
        if (latest == null) {
            complete = isStillThere(table);
            return;
        }
        int old = 0;
        long last = Math.max(1, latest.longValue() - MOST);
        for (long id = latest.longValue(); id >= last; id--) {
            Snapshot snapshot;
            try {
                snapshot = manager.snapshot(id);
            } catch (Throwable expired) {
                CaughtErrors.reportUnforeseen("PaimonSnapshots.go", expired);
                complete = older;
                return;
            }
            if (user != null && user.equals(snapshot.commitUser())) {
                found.add(snapshot);
                if (first && snapshot.commitKind() != Snapshot.CommitKind.COMPACT) return;
            } else if (snapshot.timeMillis() < since) {
                older = true;
                if (++old >= PATIENCE) return;
            } else {
                old = 0;
                if (user == null && snapshot.timeMillis() <= until && snapshot.commitKind().name().equals(kind)
                    && !PaimonState.HOOK.isOwn(snapshot.commitUser())) found.add(snapshot);
            }
        }
        complete = last == 1;
    }

    private static boolean isStillThere(FileStoreTable table) {
        try {
            SchemaManager schemas = new SchemaManager(table.fileIO(), table.location(), PaimonTables.branch(table));
            return schemas.schema(table.schema().id()).timeMillis() == table.schema().timeMillis();
        } catch (Throwable missing) {
            CaughtErrors.reportUnforeseen("PaimonSnapshots.isStillThere", missing);
            return false;
        }
    }

    public void write(Json json) {
        json.entry("complete", complete).entry("older", older).key("snapshots").openList();
        for (int i = found.size() - 1; i >= 0; i--) {
            json.open();
            entries((Snapshot) found.get(i), json);
            json.close();
        }
        json.closeList();
    }
}
