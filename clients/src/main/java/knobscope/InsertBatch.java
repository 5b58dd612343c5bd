package knobscope;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/**
 * Rows of a load that wait to be stored in one transaction. They are kept until the commit worked: a transaction
 * that failed (SQLite busy, a deadlock) is tried again as a whole, so no row is lost with it.
 */
final class InsertBatch {
  private static final int TRIES = 5;

  private final Connection connection;
  private final int size;
  private final List<String[]> rows = new ArrayList<>();
  private PreparedStatement insert;

  InsertBatch(Connection connection, int size) {
    this.connection = connection;
    this.size = size;
  }

  /** Adds the parameters of one insert; stores the batch when it is full. All rows use the same statement. */
  void add(PreparedStatement statement, String[] row) throws SQLException {
    insert = statement;
    rows.add(row);
    if (rows.size() >= size) {
      store();
    }
  }

  void store() throws SQLException {
    for (int attempt = 1; !rows.isEmpty(); attempt++) {
      try {
        storeOnce();
        rows.clear();
      } catch (SQLException e) {
        insert.clearBatch();
        connection.rollback();
        if (attempt == TRIES) {
          rows.clear();
          throw e;
        }
      }
    }
  }

  private void storeOnce() throws SQLException {
    for (String[] row : rows) {
      for (int i = 0; i < row.length; i++) {
        insert.setString(i + 1, row[i]);
      }
      insert.addBatch();
    }
    insert.executeBatch();
    connection.commit();
  }
}
