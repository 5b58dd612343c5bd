package knobscope;

import java.sql.SQLException;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Operations that fail because of another one, as deadlocks do: an application would repeat them, so the client does,
 * a bounded number of times.
 */
public final class Conflicts {
  /** Attempts at one operation; what fails as often as that counts as failed. */
  private static final int ATTEMPTS = 10;
  /** The first repetition follows at once, later ones after a random time up to this, doubled each time. */
  private static final double PAUSE_S = 0.001;
  private static final int SQLITE_BUSY = 5;
  private static final int SQLITE_LOCKED = 6;
  /** Serialization failure and deadlock of the standard and of PostgreSQL; timeout of H2; conflict of H2's MVStore. */
  private static final Set<String> STATES = Set.of("HYT00", "90131");
  /** MySQL and MariaDB: lock wait timeout, deadlock, record has changed. Oracle: deadlock, cannot serialize. */
  private static final Set<Integer> CODES = Set.of(1205, 1213, 1020, 60, 8177);

  private Conflicts() {}

  /** A call on a driver that can be repeated as it is. */
  public interface Attempt<T> {
    T run() throws SQLException;
  }

  /** Repeats a call while it fails because of others; every repetition is counted for the operation under way. */
  public static <T> T repeat(Attempt<T> attempt) throws SQLException {
    for (int done = 1;; done++) {
      try {
        return attempt.run();
      } catch (SQLException e) {
        TimedDB client = TimedDB.ofThread();
        if (!isConflict(e) || done == ATTEMPTS || client == null) {
          throw e;
        }
        client.retry();
        client.pause(done == 1 ? 0 : ThreadLocalRandom.current().nextDouble() * PAUSE_S * (1 << done));
      }
    }
  }

  /** Whether a call failed because of another one and not by itself. SQLite and DuckDB have no SQL states. */
  public static boolean isConflict(SQLException error) {
    String state = error.getSQLState();
    if (state == null || state.isEmpty()) {
      int code = error.getErrorCode() & 0xff; // without the extension
      return code == SQLITE_BUSY || code == SQLITE_LOCKED
          || String.valueOf(error.getMessage()).startsWith("TransactionContext Error: Conflict");
    }
    return state.startsWith("40") || STATES.contains(state) || CODES.contains(error.getErrorCode());
  }
}
