import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/**
 * Answers lines of statements, separated by ';', with what the last one returns. Each line has a database of its own
 * (the file named by the argument), so that nothing is left over from the line before.
 */
final class SqliteProbe {
  public static void main(String[] args) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      for (String suffix : new String[] {"", "-wal", "-shm", "-journal"}) {
        Files.deleteIfExists(Path.of(args[0] + suffix));
      }
      try (Connection connection = DriverManager.getConnection("jdbc:sqlite:" + args[0])) {
        String answer = "";
        for (String sql : line.split(";")) {
          answer = ask(connection, sql);
        }
        System.out.println(answer);
      }
    }
  }

  private static String ask(Connection connection, String sql) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      if (!statement.execute(sql)) {
        return "";
      }
      try (ResultSet rows = statement.getResultSet()) {
        return rows.next() ? rows.getString(1) : "";
      }
    }
  }
}
