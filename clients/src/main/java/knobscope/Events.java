package knobscope;

import java.io.IOException;
import java.io.PrintStream;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.time.Instant;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;

/** The events on standard output: one line each, {@code @knobscope } and a JSON object. */
final class Events {
  private static final JsonFactory JSON = new JsonFactory();
  private static final PrintStream OUT = System.out;

  static {
    System.setOut(System.err); // whatever YCSB or a driver prints cannot come between two events
  }

  private Events() {}

  /** Writes the fields of an event that come after its name. */
  interface Fields {
    void write(JsonGenerator json) throws IOException;
  }

  static void emit(String event, Fields fields) {
    StringWriter text = new StringWriter();
    try (JsonGenerator json = JSON.createGenerator(text)) {
      json.writeStartObject();
      json.writeStringField("event", event);
      fields.write(json);
      json.writeEndObject();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    OUT.println("@knobscope " + text);
    OUT.flush();
  }

  /** An event that says only when it happened: {@code at_ns}, nanoseconds since 1970. */
  static void emitTime(String event, Instant at) {
    emit(event, json -> json.writeNumberField("at_ns", at.getEpochSecond() * 1_000_000_000L + at.getNano()));
  }
}
