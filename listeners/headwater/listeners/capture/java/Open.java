package headwater.capture;

import java.util.ArrayList;
import java.util.List;

/** An execution that has begun: a statement, part of one, or a statement within a micro-batch. */
final class Open {
    final Statement statement;
    /** Not the job's doing. */
    final boolean isOwn;
    /** Its own start was seen, not only that of a part. */
    boolean isBegun;
    /** A part of it found no room. */
    boolean isPartial;
    /** The micro-batch that this statement is a part of: what a user's function does with it. */
    Open batch;
    /** Within a micro-batch: the statement that was running when this one began, and may have made it. */
    Open outer;
    /** It runs other commands to do what it does. */
    boolean isComposite;
    boolean isOver;
    /** Ids of executions that were seen to begin within it, to be forgotten with it. */
    final List members = new ArrayList();

    Open(Statement statement, boolean isOwn) {
        this.statement = statement;
        this.isOwn = isOwn;
    }

    boolean isOfUsersFunction() { return statement.stream != null && statement.stream.isOfUsersFunction(); }
}
