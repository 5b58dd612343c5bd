package knobscope;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ReadbackTest {
  @TempDir
  Path directory;

  private Readback parse(String json) throws IOException {
    return Readback.parse(Files.writeString(directory.resolve("readback.json"), json));
  }

  @Test
  void bothFormsAreUnderstood() throws IOException {
    assertEquals(new Readback("select 1, \"2\"", Map.of()), parse("{\"query\": \"select 1, \\\"2\\\"\"}"));
    assertEquals(new Readback(null, Map.of("a", "pragma a", "b", "pragma b")),
        parse("{\"each\": {\"a\": \"pragma a\", \"b\": \"pragma b\"}}"));
  }

  @Test
  void anythingElseIsRefused() {
    assertThrows(IOException.class, () -> parse("[]"));
    assertThrows(IOException.class, () -> parse("{\"other\": \"x\"}"));
    assertThrows(IOException.class, () -> parse("{\"each\": {\"a\": 1}}"));
  }

  @Test
  void connectionsThatDifferAreNamed() {
    List<Map<String, String>> connections = List.of(Map.of("a", "1", "b", "2"), Map.of("a", "1", "b", "3"),
        Map.of("a", "1", "b", "2", "c", "4"));
    assertEquals(List.of(new Readback.Disagreement("b", List.of("2", "3")),
        new Readback.Disagreement("c", List.of("(no value)", "4"))), Readback.compare(connections));
  }
}
