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
 * How to ask a connection for the values its knobs really have: one statement that answers (name, value) rows, or one
 * statement for each knob. Read from JSON: {@code {"query": "..."}} or {@code {"each": {"knob": "...", ...}}}.
 */
record Readback(String query, Map<String, String> each) {
  /** A knob on which connections disagree, and every value that was seen. */
  record Disagreement(String knob, List<String> values) {}

  static Readback parse(Path file) throws IOException {
    String query = null;
    Map<String, String> each = new LinkedHashMap<>();
    try (JsonParser json = new JsonFactory().createParser(file.toFile())) {
      expect(json.nextToken() == JsonToken.START_OBJECT, file);
      while (json.nextToken() == JsonToken.FIELD_NAME) {
        String key = json.currentName();
        JsonToken value = json.nextToken();
        if (key.equals("query") && value == JsonToken.VALUE_STRING) {
          query = json.getText();
        } else {
          expect(key.equals("each") && value == JsonToken.START_OBJECT, file);
          while (json.nextToken() == JsonToken.FIELD_NAME) {
            expect(json.nextToken() == JsonToken.VALUE_STRING, file);
            each.put(json.currentName(), json.getText());
          }
        }
      }
    }
    return new Readback(query, each);
  }

  private static void expect(boolean condition, Path file) throws IOException {
    if (!condition) {
      throw new IOException(file + " must be {\"query\": text} or {\"each\": {knob: text}}");
    }
  }

  /** The values that this connection sees; a knob of which it knows nothing is missing. */
  Map<String, String> ask(DB connection) throws DBException {
    if (!(connection instanceof ReadsBack asked)) {
      throw new DBException(connection.getClass().getName() + " cannot read knobs back");
    }
    Map<String, String> values = query == null ? new LinkedHashMap<>() : asked.readAll(query);
    for (Map.Entry<String, String> knob : each.entrySet()) {
      String value = asked.readOne(knob.getValue());
      if (value != null) {
        values.put(knob.getKey(), value);
      }
    }
    return values;
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
