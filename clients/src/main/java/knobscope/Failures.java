package knobscope;

import java.sql.SQLException;
import java.util.concurrent.atomic.AtomicInteger;
import site.ycsb.DBException;

/** What went wrong: the first few failed operations are printed, the last one is remembered for the closing word. */
final class Failures {
  private static final int PRINTED = 10;
  private static final AtomicInteger SEEN = new AtomicInteger();
  private static volatile String first;
  private static volatile String last = "none";

  private Failures() {}

  /** Takes note of one failed operation; cheap enough for a server that refuses everything. */
  static void note(String operation, String reason) {
    last = operation + ": " + reason;
    if (first == null) {
      first = last;
    }
    if (SEEN.get() < PRINTED && SEEN.getAndIncrement() < PRINTED) {
      System.err.println("failed " + last);
    }
  }

  /** The first operation that failed, null when none has. */
  static String first() {
    return first;
  }

  static String last() {
    return last;
  }

  /** Ends the client at once with exit code 1; no other thread can delay it or change the code. */
  static void die(String reason) {
    die("failed", reason);
  }

  /** The same, for one of the kinds "failed" and "refused" (the DBMS did not accept a setting). */
  static void die(String kind, String reason) {
    System.err.println("knobscope client: " + reason);
    System.err.flush();
    Events.emit("failed", json -> {
      json.writeStringField("kind", kind);
      json.writeStringField("reason", reason);
    });
    Runtime.getRuntime().halt(1);
  }

  /** An error as one line: what the DBMS said, or the kind and message of anything else. */
  static String describe(Throwable error) {
    boolean wrapper = error instanceof DBException || error instanceof BindingException;
    Throwable shown = wrapper && error.getCause() != null ? error.getCause() : error;
    boolean plain = shown instanceof SQLException || shown instanceof DBException;
    return String.valueOf(plain ? shown.getMessage() : shown).replaceAll("\\s*\\R\\s*", " ");
  }
}
