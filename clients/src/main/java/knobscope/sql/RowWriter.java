package knobscope.sql;

import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Stores many rows of a table: statements of many rows each are fast with every driver, batches are not. */
public final class RowWriter {
  private static final int ROWS = 100;
  private static final int ROWS_PER_COMMIT = 10_000;

  private final Sql sql;
  private final String insert;
  private final String row;
  private final List<Object> values = new ArrayList<>();
  private int rows;
  private int uncommitted;

  public RowWriter(Sql sql, String table, int columns) {
    this.sql = sql;
    insert = "insert into " + table + " values ";
    row = "(" + String.join(", ", Collections.nCopies(columns, "?")) + ")";
  }

  public void add(Object... columns) throws SQLException {
    Collections.addAll(values, columns);
    if (++rows == ROWS) {
      store();
    }
  }

  /** Stores what is left. */
  public void finish() throws SQLException {
    if (rows > 0) {
      store();
    }
    sql.commit();
  }

  private void store() throws SQLException {
    sql.update(insert + String.join(", ", Collections.nCopies(rows, row)), values.toArray());
    uncommitted += rows;
    values.clear();
    rows = 0;
    if (uncommitted >= ROWS_PER_COMMIT) {
      sql.commit();
      uncommitted = 0;
    }
  }
}
