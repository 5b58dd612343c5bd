package knobscope;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/**
 * Remembers what a server acknowledged before it was killed: writes rows of its own, one after the other, until the
 * server is gone, waits until it is back, and looks which of the rows are there. Where the witness itself ends with the
 * DBMS, one writes and says so row by row, and another one looks.
 */
final class Witness {
  /** Opens connections as all others are opened. */
  interface Connector {
    DB connect() throws DBException;
  }

  /** How many acknowledged rows are gone, since when (from the first of these to the end), and when the end was. */
  record Testimony(int lost, long lostNs, long endMillis) {}

  private static final int MOST_ROWS = 1 << 20;
  private static final long PATIENCE_NS = 300_000_000_000L;
  private static final int PAUSE_MS = 50;
  private static final String VALUE = "x".repeat(100);

  private final Connector connector;
  private final String table;
  private final String field;
  private final long[] acknowledgedAt = new long[MOST_ROWS];

  Witness(Connector connector, String table, String field) {
    this.connector = connector;
    this.table = table;
    this.field = field;
  }

  /** Ends when the server was killed and has come back; `begun` is called when the first row was acknowledged. */
  Testimony testify(DB binding, Runnable begun) throws DBException, InterruptedException {
    int rows = 0;
    while (rows < MOST_ROWS && write(binding, rows)) {
      acknowledgedAt[rows++] = System.nanoTime();
      if (rows == 1) {
        begun.run();
      }
    }
    long end = System.nanoTime();
    long endMillis = System.currentTimeMillis();
    if (rows == 0) {
      throw new DBException("the first row was not written; " + Failures.last());
    }
    DB again = reconnect();
    int lost = 0;
    long since = end;
    for (int row = rows - 1; row >= 0; row--) {
      if (!isThere(again, row)) {
        lost++;
        since = acknowledgedAt[row];
      }
    }
    return new Testimony(lost, end - since, endMillis);
  }

  /** Writes rows until one is refused; {@code acknowledged} is called after each. */
  void write(DB binding, Runnable acknowledged) {
    for (int row = 0; row < MOST_ROWS && write(binding, row); row++) {
      acknowledged.run();
    }
  }

  /** Returns how many of the first {@code rows} rows are not there. */
  int countLost(DB binding, int rows) throws DBException {
    int lost = 0;
    for (int row = 0; row < rows; row++) {
      lost += isThere(binding, row) ? 0 : 1;
    }
    return lost;
  }

  private boolean write(DB binding, int row) {
    Map<String, ByteIterator> values = new HashMap<>();
    values.put(field, new StringByteIterator(VALUE));
    try {
      return binding.insert(table, key(row), values).isOk();
    } catch (RuntimeException e) {
      Failures.note("WITNESS", Failures.describe(e));
      return false;
    }
  }

  /** A server that still recovers may take connections and refuse to answer. */
  private DB reconnect() throws DBException, InterruptedException {
    long deadline = System.nanoTime() + PATIENCE_NS;
    while (true) {
      try {
        DB binding = connector.connect();
        isThere(binding, 0);
        return binding;
      } catch (DBException | RuntimeException e) {
        if (System.nanoTime() > deadline) {
          throw new DBException("the server did not come back", e);
        }
        Thread.sleep(PAUSE_MS);
      }
    }
  }

  private boolean isThere(DB binding, int row) throws DBException {
    Status status = binding.read(table, key(row), Set.of(field), new HashMap<>());
    if (!status.isOk() && !status.equals(Status.NOT_FOUND)) {
      throw new DBException("a row cannot be read: " + status.getName());
    }
    return status.isOk();
  }

  private static String key(int row) {
    return "witness" + row;
  }
}
