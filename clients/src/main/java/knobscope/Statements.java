package knobscope;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/** The prepared statements of one connection: each is prepared once for the columns it touches. */
final class Statements {
  static final String KEY = "YCSB_KEY";
  private static final Pattern NAME = Pattern.compile("[A-Za-z_][A-Za-z0-9_]*");

  private final Connection connection;
  private final Map<List<Object>, PreparedStatement> prepared = new HashMap<>();

  Statements(Connection connection) {
    this.connection = connection;
  }

  PreparedStatement read(String table, List<String> columns) throws SQLException {
    return get("read", table, columns);
  }

  PreparedStatement scan(String table, List<String> columns) throws SQLException {
    return get("scan", table, columns);
  }

  PreparedStatement update(String table, List<String> columns) throws SQLException {
    return get("update", table, columns);
  }

  PreparedStatement insert(String table, List<String> columns) throws SQLException {
    return get("insert", table, columns);
  }

  PreparedStatement delete(String table) throws SQLException {
    return get("delete", table, List.of());
  }

  private PreparedStatement get(String verb, String table, List<String> columns) throws SQLException {
    List<Object> shape = List.of(verb, table, columns);
    PreparedStatement known = prepared.get(shape);
    if (known == null) {
      known = connection.prepareStatement(sql(verb, table, columns));
      prepared.put(shape, known);
    }
    return known;
  }

  static String sql(String verb, String table, List<String> columns) {
    name(table);
    for (String column : columns) {
      name(column);
    }
    String list = String.join(", ", columns);
    return switch (verb) {
      case "read" -> "SELECT " + list + " FROM " + table + " WHERE " + KEY + " = ?";
      case "scan" -> "SELECT " + list + " FROM " + table + " WHERE " + KEY + " >= ? ORDER BY " + KEY + " LIMIT ?";
      case "update" -> "UPDATE " + table + " SET " + String.join(" = ?, ", columns) + " = ? WHERE " + KEY + " = ?";
      case "insert" -> "INSERT INTO " + table + " (" + KEY + ", " + list + ") VALUES (?"
          + String.join("", Collections.nCopies(columns.size(), ", ?")) + ")";
      case "delete" -> "DELETE FROM " + table + " WHERE " + KEY + " = ?";
      default -> throw new IllegalArgumentException(verb);
    };
  }

  /** Names of tables and columns come from properties and cannot be parameters of a statement. */
  static String name(String name) {
    if (!NAME.matcher(name).matches()) {
      throw new IllegalArgumentException("not a name of a table or column: " + name);
    }
    return name;
  }
}
