package knobscope;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class InsertBatchTest {
  @TempDir
  Path directory;

  private Connection connect() throws SQLException {
    return DriverManager.getConnection("jdbc:sqlite:" + directory.resolve("batch.sqlite") + "?busy_timeout=1");
  }

  private static long count(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery("SELECT COUNT(*) FROM t")) {
      return rows.getLong(1);
    }
  }

  @Test
  void rowsAreStoredWhenTheBatchIsFullAndAtTheEnd() throws SQLException {
    try (Connection loading = connect(); Connection watching = connect()) {
      watching.createStatement().execute("CREATE TABLE t (YCSB_KEY text primary key, field0 text)");
      loading.setAutoCommit(false);
      PreparedStatement insert = loading.prepareStatement(Statements.sql("insert", "t", List.of("field0")));
      InsertBatch batch = new InsertBatch(loading, 3);
      for (int row = 0; row < 4; row++) {
        batch.add(insert, new String[] {"key" + row, "value"});
      }
      assertEquals(3, count(watching));
      batch.store();
      assertEquals(4, count(watching));
    }
  }

  @Test
  void aLockedDatabaseIsReportedAndTheConnectionStaysUsable() throws SQLException {
    try (Connection loading = connect(); Connection blocking = connect()) {
      blocking.createStatement().execute("CREATE TABLE t (YCSB_KEY text primary key, field0 text)");
      loading.setAutoCommit(false);
      PreparedStatement insert = loading.prepareStatement(Statements.sql("insert", "t", List.of("field0")));
      InsertBatch batch = new InsertBatch(loading, 100);
      blocking.createStatement().execute("BEGIN EXCLUSIVE");
      batch.add(insert, new String[] {"a", "value"});
      assertThrows(SQLException.class, batch::store);
      blocking.createStatement().execute("COMMIT");
      batch.add(insert, new String[] {"b", "value"});
      batch.store();
      assertEquals(1, count(blocking));
    }
  }
}
