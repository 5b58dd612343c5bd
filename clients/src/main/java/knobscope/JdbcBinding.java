package knobscope;

import java.io.IOException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.Vector;
import java.util.stream.IntStream;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/**
 * YCSB for every DBMS with a JDBC driver; one connection for each client thread. Properties: {@code jdbc.url},
 * {@code jdbc.user}, {@code jdbc.password}, {@code jdbc.batchsize} (rows in one transaction of a load).
 */
public final class JdbcBinding extends DB implements ReadsBack, CountsRecords, SqlConnection {
  private static boolean schemaDone;

  private Connection connection;
  private Statements statements;
  private InsertBatch batch;
  private List<String> allColumns;

  /** The first connection is alone: a pragma such as journal_mode changes the file, and the table is made here. */
  @Override
  public void init() throws DBException {
    Settings settings = new Settings(getProperties());
    try {
      synchronized (JdbcBinding.class) {
        if (!schemaDone) {
          open(settings);
          for (String statement : settings.schema()) {
            execute(statement);
          }
          schemaDone = true;
        }
      }
      if (connection == null) {
        open(settings);
      }
      startBatches(settings);
    } catch (SQLException | IOException e) {
      throw new DBException(e);
    }
  }

  private void open(Settings settings) throws SQLException, IOException, DBException {
    Properties p = getProperties();
    Properties login = new Properties();
    for (String part : List.of("user", "password")) {
      if (p.containsKey("jdbc." + part)) {
        login.setProperty(part, p.getProperty("jdbc." + part));
      }
    }
    connection = DriverManager.getConnection(p.getProperty("jdbc.url"), login);
    statements = new Statements(connection);
    String prefix = p.getProperty("fieldnameprefix", "field");
    int count = Integer.parseInt(p.getProperty("fieldcount", "10"));
    allColumns = IntStream.range(0, count).mapToObj(i -> prefix + i).toList();
    try {
      for (String statement : settings.init()) {
        execute(statement);
      }
    } catch (SQLException e) {
      throw new RefusedException(e);
    }
  }

  private void execute(String sql) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.execute(sql);
    } catch (SQLException e) {
      throw about(sql, e);
    }
  }

  private void startBatches(Settings settings) throws SQLException {
    if (settings.loading()) {
      connection.setAutoCommit(false);
      batch = new InsertBatch(connection, Integer.parseInt(getProperties().getProperty("jdbc.batchsize", "1000")));
    }
  }

  @Override
  public void cleanup() throws DBException {
    try {
      if (batch != null) {
        batch.store();
      }
      connection.close();
    } catch (SQLException e) {
      throw new DBException(e);
    }
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    return answer(() -> {
      List<String> columns = columns(fields);
      PreparedStatement select = statements.read(table, columns);
      select.setString(1, key);
      try (ResultSet rows = select.executeQuery()) {
        if (!rows.next()) {
          return Status.NOT_FOUND;
        }
        copy(rows, columns, result);
        return Status.OK;
      }
    });
  }

  @Override
  public Status scan(String table, String start, int count, Set<String> fields,
      Vector<HashMap<String, ByteIterator>> result) {
    return answer(() -> {
      List<String> columns = columns(fields);
      PreparedStatement select = statements.scan(table, columns);
      select.setString(1, start);
      select.setInt(2, count);
      try (ResultSet rows = select.executeQuery()) {
        result.clear(); // of an earlier attempt
        while (rows.next()) {
          HashMap<String, ByteIterator> row = new HashMap<>();
          copy(rows, columns, row);
          result.add(row);
        }
      }
      return Status.OK;
    });
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    List<String> texts = read(values); // an iterator is empty when the statement is repeated
    return answer(() -> {
      PreparedStatement update = statements.update(table, new ArrayList<>(values.keySet()));
      int last = 0;
      for (String text : texts) {
        update.setString(++last, text);
      }
      update.setString(last + 1, key);
      return update.executeUpdate() > 0 ? Status.OK : Status.NOT_FOUND;
    });
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    List<String> row = new ArrayList<>(List.of(key));
    row.addAll(read(values));
    return answer(() -> {
      PreparedStatement insert = statements.insert(table, new ArrayList<>(values.keySet()));
      if (batch != null) {
        batch.add(insert, row.toArray(String[]::new));
        return Status.BATCHED_OK;
      }
      for (int i = 0; i < row.size(); i++) {
        insert.setString(i + 1, row.get(i));
      }
      insert.executeUpdate();
      return Status.OK;
    });
  }

  private static List<String> read(Map<String, ByteIterator> values) {
    return values.values().stream().map(ByteIterator::toString).toList();
  }

  @Override
  public Status delete(String table, String key) {
    return answer(() -> {
      PreparedStatement delete = statements.delete(table);
      delete.setString(1, key);
      return delete.executeUpdate() > 0 ? Status.OK : Status.NOT_FOUND;
    });
  }

  @Override
  public Connection connection() {
    return connection;
  }

  @Override
  public Map<String, String> readAll(String query) throws DBException {
    Map<String, String> values = new LinkedHashMap<>();
    try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(query)) {
      while (rows.next()) {
        String value = rows.getString(2);
        if (value != null) {
          values.put(rows.getString(1), value);
        }
      }
    } catch (SQLException e) {
      throw new DBException(about(query, e));
    }
    return values;
  }

  @Override
  public String readOne(String query) throws DBException {
    try (Statement statement = connection.createStatement()) {
      if (!statement.execute(query)) { // an unknown pragma of SQLite answers nothing at all
        return null;
      }
      try (ResultSet rows = statement.getResultSet()) {
        return rows.next() ? rows.getString(1) : null;
      }
    } catch (SQLException e) {
      throw new DBException(about(query, e));
    }
  }

  @Override
  public long countRecords(String table) throws DBException {
    return Long.parseLong(readOne("SELECT COUNT(*) FROM " + Statements.name(table)));
  }

  private List<String> columns(Set<String> fields) {
    return fields == null ? allColumns : new ArrayList<>(fields);
  }

  private static void copy(ResultSet row, List<String> columns, Map<String, ByteIterator> result)
      throws SQLException {
    for (int i = 0; i < columns.size(); i++) {
      String value = row.getString(i + 1);
      if (value != null) {
        result.put(columns.get(i), new StringByteIterator(value));
      }
    }
  }

  /** The error with the statement in front: the reader did not write the code, but did write the statement. */
  private static SQLException about(String sql, SQLException error) {
    return new SQLException("\"" + sql + "\": " + error.getMessage(), error.getSQLState(), error);
  }

  /** Repeats what conflicts with other threads; the batches of a load are repeated as a whole, where they are stored. */
  private Status answer(Conflicts.Attempt<Status> call) {
    try {
      return batch == null ? Conflicts.repeat(call) : call.run();
    } catch (SQLException e) {
      throw new BindingException(e);
    }
  }
}
