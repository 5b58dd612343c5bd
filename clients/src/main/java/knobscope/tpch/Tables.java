package knobscope.tpch;

import java.io.BufferedReader;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.List;
import java.util.regex.Pattern;
import knobscope.sql.RowWriter;
import knobscope.sql.Sql;

/** The eight tables: their columns' types, and how a file of tpchgen-cli becomes rows of one. */
final class Tables {
  /** A letter per column: integer, text, decimal (c as in currency), date. */
  private record Table(String name, String types) {}

  private static final List<Table> ALL = List.of(
      new Table("region", "itt"), new Table("nation", "itit"), new Table("part", "ittttitct"),
      new Table("supplier", "ittitct"), new Table("partsupp", "iiict"), new Table("customer", "ittitctt"),
      new Table("orders", "iitcdttit"), new Table("lineitem", "iiiiccccttdddttt"));
  static final List<String> NAMES = ALL.stream().map(Table::name).toList();

  private static final Pattern BAR = Pattern.compile("|", Pattern.LITERAL);

  private Tables() {}

  /** Stores the rows of a table and returns how many there are. */
  static long load(Sql sql, Dialect dialect, String name, Path directory) throws SQLException, IOException {
    Table table = ALL.get(NAMES.indexOf(name));
    RowWriter writer = new RowWriter(sql, table.name(), table.types().length());
    long rows = 0;
    try (BufferedReader file = Files.newBufferedReader(directory.resolve(table.name() + ".tbl"))) {
      for (String line = file.readLine(); line != null; line = file.readLine()) {
        writer.add(values(dialect, table, BAR.split(line)));
        rows++;
      }
    }
    writer.finish();
    return rows;
  }

  private static Object[] values(Dialect dialect, Table table, String[] texts) {
    Object[] values = new Object[table.types().length()];
    for (int i = 0; i < values.length; i++) {
      values[i] = switch (table.types().charAt(i)) {
        case 'i' -> Integer.valueOf(texts[i]);
        case 'c' -> new BigDecimal(texts[i]);
        case 'd' -> dialect.date(texts[i]);
        default -> texts[i];
      };
    }
    return values;
  }
}
