package knobscope.tpch;

import java.sql.SQLException;
import java.time.LocalDate;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import knobscope.queries.Texts;
import knobscope.sql.Sql;

/** The DBMSs that answer all 22 queries, by the name that their drivers give, and what they write differently. */
enum Dialect {
  POSTGRESQL("PostgreSQL", "extract(year from $1)", "analyze"),
  SQLITE("SQLite", "cast(strftime('%Y', $1) as integer)", "analyze"),
  DUCKDB("DuckDB", "extract(year from $1)", "analyze"),
  MARIADB("MariaDB", "extract(year from $1)", "analyze table " + String.join(", ", Tables.NAMES)),
  MYSQL("MySQL", "extract(year from $1)", "analyze table " + String.join(", ", Tables.NAMES));

  /** Statement after which the optimiser knows how large the tables are. */
  final String statistics;
  private final String product;
  private final String year;

  Dialect(String product, String year, String statistics) {
    this.product = product;
    this.year = year;
    this.statistics = statistics;
  }

  static Dialect of(Sql sql) throws SQLException {
    String product = sql.product();
    return Arrays.stream(values()).filter(dialect -> dialect.product.equals(product)).findAny()
        .orElseThrow(() -> new SQLException("TPC-H cannot run on " + product + "; it can on "
            + Arrays.stream(values()).map(dialect -> dialect.product).collect(Collectors.joining(", "))));
  }

  /** A date as the driver takes it. SQLite keeps text; the driver for MySQL garbles what Java calls a date. */
  Object date(String text) {
    return this == POSTGRESQL || this == DUCKDB ? LocalDate.parse(text) : text;
  }

  /** Q1 to Q22 for a scale factor. */
  Map<String, String> queries(double scaleFactor) {
    String fraction = String.format(Locale.ROOT, "%.10f", 0.0001 / scaleFactor); // clause 2.4.11.3
    Map<String, String> queries = new LinkedHashMap<>();
    for (String text : Texts.statements(Dialect.class, "queries.sql")) {
      String query = text.replaceAll("year_of\\((\\w+)\\)", year).replace("{FRACTION}", fraction);
      queries.put("Q" + (queries.size() + 1), query);
    }
    return queries;
  }
}
