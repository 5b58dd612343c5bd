package knobscope;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;

class ReadbackTest {
  @TempDir
  Path directory;

  private Readback parse(String json) throws IOException {
    return Readback.parse(Files.writeString(directory.resolve("readback.json"), json));
  }

  @Test
  void allFormsAreUnderstood() throws IOException {
    assertEquals(new Readback("select 1, \"2\"", Map.of(), Map.of()), parse("{\"query\": \"select 1, \\\"2\\\"\"}"));
    assertEquals(new Readback(null, Map.of("a", "pragma a", "b", "pragma b"), Map.of()),
        parse("{\"each\": {\"a\": \"pragma a\", \"b\": \"pragma b\"}}"));
    assertEquals(new Readback(null, Map.of(), Map.of("a", List.of("pragma a=7", "pragma a"))),
        parse("{\"attempts\": {\"a\": [\"pragma a=7\", \"pragma a\"]}}"));
  }

  /** A connection that answers what it was asked, and refuses everything that begins with "no". */
  private static final class Echo extends DB implements ReadsBack {
    @Override
    public Map<String, String> readAll(String query) {
      return Map.of();
    }

    @Override
    public String readOne(String query) throws DBException {
      if (query.startsWith("no")) {
        throw new DBException(query + " is refused");
      }
      return query.isEmpty() ? null : query;
    }

    @Override
    public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
      return Status.NOT_IMPLEMENTED;
    }

    @Override
    public Status scan(String table, String start, int count, Set<String> fields,
        Vector<HashMap<String, ByteIterator>> result) {
      return Status.NOT_IMPLEMENTED;
    }

    @Override
    public Status update(String table, String key, Map<String, ByteIterator> values) {
      return Status.NOT_IMPLEMENTED;
    }

    @Override
    public Status insert(String table, String key, Map<String, ByteIterator> values) {
      return Status.NOT_IMPLEMENTED;
    }

    @Override
    public Status delete(String table, String key) {
      return Status.NOT_IMPLEMENTED;
    }
  }

  @Test
  void anAttemptAnswersItsFirstRefusalOrItsLastAnswer() throws DBException {
    Readback readback = new Readback(null, Map.of(), Map.of("refused", List.of("a", "no b", "no c"), "accepted",
        List.of("a", "b"), "silent", List.of("a", "")));
    assertEquals(Map.of("refused", "no b is refused", "accepted", "b"), readback.ask(new Echo()));
    Readback broken = new Readback(null, Map.of("alive", "no b"), Map.of("refused", List.of("no c")));
    assertThrows(DBException.class, () -> broken.ask(new Echo()));
  }

  @Test
  void anythingElseIsRefused() {
    assertThrows(IOException.class, () -> parse("[]"));
    assertThrows(IOException.class, () -> parse("{\"other\": \"x\"}"));
    assertThrows(IOException.class, () -> parse("{\"each\": {\"a\": 1}}"));
    assertThrows(IOException.class, () -> parse("{\"attempts\": {\"a\": \"x\"}}"));
    assertThrows(IOException.class, () -> parse("{\"attempts\": {\"a\": [1]}}"));
  }

  @Test
  void connectionsThatDifferAreNamed() {
    List<Map<String, String>> connections = List.of(Map.of("a", "1", "b", "2"), Map.of("a", "1", "b", "3"),
        Map.of("a", "1", "b", "2", "c", "4"));
    assertEquals(List.of(new Readback.Disagreement("b", List.of("2", "3")),
        new Readback.Disagreement("c", List.of("(no value)", "4"))), Readback.compare(connections));
  }
}
