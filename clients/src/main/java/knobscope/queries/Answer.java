package knobscope.queries;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.HexFormat;
import java.util.List;
import java.util.StringJoiner;
import knobscope.sql.Sql;

/**
 * Digests of answers that are the same whichever DBMS gave them: SHA-256 of the rows, sorted, since rows that a query
 * ranks as equal may come in any order.
 */
final class Answer {
  /**
   * Hundredths are what counts (TPC-H, clause 2.1.3.5), and floating-point sums are not exact. So numbers are cut where no
   * decimal of the tables' few digits can lie: just beside a cut, a billionth would make another digest.
   */
  private static final BigDecimal OFF_THE_EDGE = new BigDecimal("0.0012345679");

  private Answer() {}

  /** Runs a query to its last row. */
  static String digest(Sql sql, String query) throws SQLException {
    List<String> rows = sql.all(query, Answer::text);
    sql.commit();
    String all = String.join("\n", rows.stream().sorted().toList());
    try {
      byte[] digest = MessageDigest.getInstance("SHA-256").digest(all.getBytes(StandardCharsets.UTF_8));
      return HexFormat.of().formatHex(digest);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e); // every Java has it
    }
  }

  private static String text(ResultSet row) throws SQLException {
    StringJoiner text = new StringJoiner("|");
    for (int column = 1; column <= row.getMetaData().getColumnCount(); column++) {
      text.add(text(row.getObject(column)));
    }
    return text.toString();
  }

  /** Numbers without their types, text without the blanks that fill up a char, dates as they are written. */
  static String text(Object value) {
    if (value instanceof Number number && Double.isFinite(number.doubleValue())) {
      BigDecimal exact = new BigDecimal(number.toString());
      return exact.add(OFF_THE_EDGE).setScale(2, RoundingMode.FLOOR).toPlainString();
    }
    return String.valueOf(value).stripTrailing();
  }
}
