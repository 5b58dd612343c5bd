package knobscope.tpcds;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.Arrays;
import java.util.stream.Collectors;
import knobscope.sql.Sql;
import org.postgresql.PGConnection;

/** How each DBMS that has all queries reads a file: columns between bars, nothing for null, quotes where need be. */
enum Copy {
  DUCKDB("DuckDB") {
    @Override
    long rows(Sql sql, String table, Path file) throws SQLException {
      return sql.update("copy " + table + " from '" + file.toString().replace("'", "''")
          + "' (format csv, auto_detect false, delimiter '|', quote '\"', escape '\"', allow_quoted_nulls false)");
    }
  },
  POSTGRESQL("PostgreSQL") {
    @Override
    long rows(Sql sql, String table, Path file) throws SQLException, IOException {
      try (BufferedReader rows = Files.newBufferedReader(file)) {
        return sql.driver(PGConnection.class).getCopyAPI()
            .copyIn("copy " + table + " from stdin (format csv, delimiter '|')", rows);
      }
    }
  };

  static final String SUFFIX = ".csv";
  private final String product;

  Copy(String product) {
    this.product = product;
  }

  static Copy of(Sql sql) throws SQLException {
    String product = sql.product();
    return Arrays.stream(values()).filter(copy -> copy.product.equals(product)).findAny()
        .orElseThrow(() -> new SQLException("TPC-DS cannot run on " + product + "; it can on "
            + Arrays.stream(values()).map(copy -> copy.product).collect(Collectors.joining(", "))));
  }

  /** Stores the rows of a file and returns how many there are. */
  abstract long rows(Sql sql, String table, Path file) throws SQLException, IOException;

  /** Stores the rows of a table. */
  final long load(Sql sql, String table, Path directory) throws SQLException, IOException {
    long rows = rows(sql, table, directory.resolve(table + SUFFIX));
    sql.commit();
    return rows;
  }
}
