package knobscope;

import java.io.IOException;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;
import java.util.Map;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;

/** Writes intervals.csv, summary.json and sessions.csv; a file that has its final name is complete. */
final class ResultFiles {
  private static final String HEADER = "t_s,op,ops,failed,mean_us,p50_us,p95_us,p99_us,max_us\n";

  private ResultFiles() {}

  /** {@code fromNs} and {@code toNs} bound the measured window (System.nanoTime). */
  static void write(Path directory, IntervalLog log, long fromNs, long toNs) throws IOException {
    place(directory, "intervals.csv", intervals(log, fromNs));
    place(directory, "sessions.csv", SessionLog.csv());
    place(directory, "summary.json", summary(log.window(), StatementCounts.SHARED.window(), (toNs - fromNs) / 1e9));
  }

  /** One line for each interval and operation with traffic; ALL has a line for every interval. */
  static String intervals(IntervalLog log, long fromNs) {
    StringBuilder csv = new StringBuilder(HEADER);
    for (IntervalLog.Row row : log.rows()) {
      Sample.Stats stats = row.stats();
      if (stats.ok() + stats.failed() > 0 || row.operation().equals(IntervalLog.ALL)) {
        csv.append(String.format(Locale.ROOT, "%.6f,%s,%d,%d", (row.endNs() - fromNs) / 1e9, row.operation(),
            stats.ok(), stats.failed()));
        csv.append(stats.ok() == 0 ? ",,,,," : String.format(Locale.ROOT, ",%.3f,%.3f,%.3f,%.3f,%.3f",
            stats.meanUs(), stats.p50Us(), stats.p95Us(), stats.p99Us(), stats.maxUs()));
        csv.append('\n');
      }
    }
    return csv.toString();
  }

  /** Latencies of an operation without a single success are null. */
  static String summary(Map<String, Sample.Stats> window,
      Map<StatementCounts.Key, StatementCounts.Sums> statements, double seconds) throws IOException {
    StringWriter text = new StringWriter();
    try (JsonGenerator json = new JsonFactory().createGenerator(text)) {
      json.writeStartObject();
      json.writeNumberField("window_s", seconds);
      json.writeObjectFieldStart("operations");
      for (Map.Entry<String, Sample.Stats> operation : window.entrySet()) {
        json.writeObjectFieldStart(operation.getKey());
        writeStats(json, operation.getValue());
        json.writeEndObject();
      }
      json.writeEndObject();
      json.writeArrayFieldStart("statements");
      for (Map.Entry<StatementCounts.Key, StatementCounts.Sums> statement : statements.entrySet()) {
        writeStatement(json, statement.getKey(), statement.getValue());
      }
      json.writeEndArray();
      json.writeStringField("first_failure", Failures.first());
      json.writeEndObject();
    }
    return text.toString();
  }

  private static void writeStatement(JsonGenerator json, StatementCounts.Key key, StatementCounts.Sums sums)
      throws IOException {
    json.writeStartObject();
    json.writeStringField("operation", key.transaction());
    json.writeStringField("table_name", key.table());
    json.writeStringField("statement", key.kind());
    json.writeNumberField("calls", sums.calls().sum());
    json.writeNumberField("rows", sums.rows().sum());
    json.writeEndObject();
  }

  private static void writeStats(JsonGenerator json, Sample.Stats stats) throws IOException {
    json.writeNumberField("ok", stats.ok());
    json.writeNumberField("failed", stats.failed());
    writeLatency(json, "mean_us", stats, stats.meanUs());
    writeLatency(json, "p50_us", stats, stats.p50Us());
    writeLatency(json, "p95_us", stats, stats.p95Us());
    writeLatency(json, "p99_us", stats, stats.p99Us());
    writeLatency(json, "p999_us", stats, stats.p999Us());
    writeLatency(json, "max_us", stats, stats.maxUs());
    json.writeNumberField("retried", stats.retried());
  }

  private static void writeLatency(JsonGenerator json, String name, Sample.Stats stats, double us)
      throws IOException {
    if (stats.ok() > 0) {
      json.writeNumberField(name, us);
    } else {
      json.writeNullField(name);
    }
  }

  private static void place(Path directory, String name, String content) throws IOException {
    Path part = directory.resolve(name + ".part");
    Files.writeString(part, content);
    Files.move(part, directory.resolve(name), StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
  }
}
