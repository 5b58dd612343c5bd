package knobscope.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import knobscope.StatementCounts;

/** A connection without autocommit, and its statements, each prepared once. */
public final class Sql {
  private final Connection connection;
  private final Map<String, PreparedStatement> prepared = new HashMap<>();

  /** Makes something of a row. */
  public interface Row<T> {
    T of(ResultSet row) throws SQLException;
  }

  /**
   * Transactions are isolated from each other as well as the DBMS does below serialisable: TPC-C is serialisable
   * under snapshot isolation. SQLite knows serialisable only.
   */
  public Sql(Connection connection) throws SQLException {
    this.connection = connection;
    int wanted = Connection.TRANSACTION_REPEATABLE_READ;
    boolean known = connection.getMetaData().supportsTransactionIsolationLevel(wanted);
    if (!connection.getAutoCommit()) {
      connection.commit();
    }
    connection.setTransactionIsolation(known ? wanted : Connection.TRANSACTION_SERIALIZABLE);
    connection.setAutoCommit(false);
  }

  /** Runs a statement once, without preparing it. */
  public void execute(String sql) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.execute(sql);
    }
  }

  public int update(String sql, Object... values) throws SQLException {
    int rows = bound(sql, values).executeUpdate();
    StatementCounts.SHARED.add(sql, rows);
    return rows;
  }

  public <T> List<T> all(String sql, Row<T> row, Object... values) throws SQLException {
    List<T> found = new ArrayList<>();
    try (ResultSet rows = bound(sql, values).executeQuery()) {
      while (rows.next()) {
        found.add(row.of(rows));
      }
    }
    StatementCounts.SHARED.add(sql, found.size());
    return found;
  }

  /** The only row; an error when there is none. */
  public <T> T one(String sql, Row<T> row, Object... values) throws SQLException {
    List<T> found = all(sql, row, values);
    if (found.isEmpty()) {
      throw new SQLException("no row: " + sql);
    }
    return found.get(0);
  }

  public void commit() throws SQLException {
    connection.commit();
  }

  public void rollback() throws SQLException {
    connection.rollback();
  }

  /** Name of the DBMS as its driver gives it. */
  public String product() throws SQLException {
    return connection.getMetaData().getDatabaseProductName();
  }

  public boolean isPostgres() throws SQLException {
    return product().equals("PostgreSQL");
  }

  /** What only the driver of this DBMS can do. */
  public <T> T driver(Class<T> type) throws SQLException {
    return connection.unwrap(type);
  }

  private PreparedStatement bound(String sql, Object... values) throws SQLException {
    PreparedStatement statement = prepared.get(sql);
    if (statement == null) {
      statement = connection.prepareStatement(sql);
      prepared.put(sql, statement);
    }
    for (int i = 0; i < values.length; i++) {
      statement.setObject(i + 1, values[i]);
    }
    return statement;
  }
}
