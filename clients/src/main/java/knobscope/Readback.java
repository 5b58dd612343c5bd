package knobscope;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeSet;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import site.ycsb.DB;
import site.ycsb.DBException;

/**
 * How to ask a connection for the values its knobs really have: one statement that answers (name, value) rows, one
 * statement for each knob, or attempts at each knob. Read from JSON: {@code {"query": "..."}},
 * {@code {"each": {"knob": "...", ...}}} or {@code {"attempts": {"knob": ["...", ...], ...}}}.
 *
 * <p>An attempt runs its statements in turn. Its value is the answer of the last one, or the words with which the first
 * of them was refused: there a refusal is what is asked for, everywhere else it ends the client. Attempts come first, so
 * that the other questions show whether the connection outlived them.
 */
record Readback(String query, Map<String, String> each, Map<String, List<String>> attempts) {
  /** Asks nothing. */
  static final Readback NOTHING = new Readback(null, Map.of(), Map.of());

  /** A knob on which connections disagree, and every value that was seen. */
  record Disagreement(String knob, List<String> values) {}

  static Readback parse(Path file) throws IOException {
    String query = null;
    Map<String, String> each = new LinkedHashMap<>();
    Map<String, List<String>> attempts = new LinkedHashMap<>();
    try (JsonParser json = new JsonFactory().createParser(file.toFile())) {
      expect(json.nextToken() == JsonToken.START_OBJECT, file);
      while (json.nextToken() == JsonToken.FIELD_NAME) {
        String key = json.currentName();
        JsonToken value = json.nextToken();
        if (key.equals("query") && value == JsonToken.VALUE_STRING) {
          query = json.getText();
        } else {
          expect((key.equals("each") || key.equals("attempts")) && value == JsonToken.START_OBJECT, file);
          while (json.nextToken() == JsonToken.FIELD_NAME) {
            String knob = json.currentName();
            json.nextToken();
            if (key.equals("each")) {
              each.put(knob, text(json, file));
            } else {
              attempts.put(knob, texts(json, file));
            }
          }
        }
      }
    }
    return new Readback(query, each, attempts);
  }

  private static String text(JsonParser json, Path file) throws IOException {
    expect(json.currentToken() == JsonToken.VALUE_STRING, file);
    return json.getText();
  }

  private static List<String> texts(JsonParser json, Path file) throws IOException {
    expect(json.currentToken() == JsonToken.START_ARRAY, file);
    List<String> found = new ArrayList<>();
    while (json.nextToken() != JsonToken.END_ARRAY) {
      found.add(text(json, file));
    }
    return found;
  }

  private static void expect(boolean condition, Path file) throws IOException {
    if (!condition) {
      throw new IOException(
          file + " must be {\"query\": text}, {\"each\": {knob: text}} or {\"attempts\": {knob: [text, ...]}}");
    }
  }

  /** The values that this connection sees; a knob of which it knows nothing is missing. */
  Map<String, String> ask(DB connection) throws DBException {
    if (!(connection instanceof ReadsBack asked)) {
      throw new DBException(connection.getClass().getName() + " cannot read knobs back");
    }
    Map<String, String> values = new LinkedHashMap<>();
    for (Map.Entry<String, List<String>> knob : attempts.entrySet()) {
      String answer = attempt(asked, knob.getValue());
      if (answer != null) {
        values.put(knob.getKey(), answer);
      }
    }
    if (query != null) {
      values.putAll(asked.readAll(query));
    }
    for (Map.Entry<String, String> knob : each.entrySet()) {
      String value = asked.readOne(knob.getValue());
      if (value != null) {
        values.put(knob.getKey(), value);
      }
    }
    return values;
  }

  private static String attempt(ReadsBack asked, List<String> statements) {
    String answer = null;
    for (String statement : statements) {
      try {
        answer = asked.readOne(statement);
      } catch (DBException refusal) {
        return Failures.describe(refusal);
      }
    }
    return answer;
  }

  /** The knobs that do not have the same value on every connection. */
  static List<Disagreement> compare(List<Map<String, String>> connections) {
    TreeSet<String> knobs = new TreeSet<>();
    connections.forEach(values -> knobs.addAll(values.keySet()));
    List<Disagreement> found = new ArrayList<>();
    for (String knob : knobs) {
      List<String> seen = connections.stream().map(values -> values.get(knob)).distinct()
          .map(value -> Objects.toString(value, "(no value)")).toList();
      if (seen.size() > 1) {
        found.add(new Disagreement(knob, seen));
      }
    }
    return found;
  }
}
