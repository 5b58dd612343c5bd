package knobscope.queries;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/** SQL files that lie beside classes: statements end with a semicolon at the end of a line. */
public final class Texts {
  private Texts() {}

  /** The statements of a file beside a class, without comments. */
  public static List<String> statements(Class<?> neighbour, String file) {
    try (InputStream stream = neighbour.getResourceAsStream(file)) {
      String text = new String(stream.readAllBytes(), StandardCharsets.UTF_8);
      String sql = text.lines().filter(line -> !line.startsWith("--")).collect(Collectors.joining("\n"));
      return Arrays.stream(sql.split(";\n|;$")).map(String::strip).filter(statement -> !statement.isEmpty()).toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
