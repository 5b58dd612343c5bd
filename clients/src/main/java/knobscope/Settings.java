package knobscope;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import site.ycsb.Client;

/** The properties of a call that are knobscope's own, next to YCSB's. */
record Settings(Properties properties) {
  /** What {@link SessionLog} asks each connection; absent: no log. */
  static final String SESSION_THREAD = "knobscope.session.thread";

  /** The binding that does the work: a class that extends site.ycsb.DB. */
  String binding() {
    return properties.getProperty("knobscope.db", JdbcBinding.class.getName());
  }

  boolean loading() {
    return !Boolean.parseBoolean(properties.getProperty(Client.DO_TRANSACTIONS_PROPERTY, "true"));
  }

  String table() {
    return properties.getProperty("table", "usertable");
  }

  long records() {
    return Long.parseLong(properties.getProperty(Client.RECORD_COUNT_PROPERTY, Client.DEFAULT_RECORD_COUNT));
  }

  /** Client threads that YCSB starts: never more than there are records to load. */
  int threads() {
    int wanted = Integer.parseInt(properties.getProperty(Client.THREAD_COUNT_PROPERTY, "1"));
    return loading() ? (int) Math.min(wanted, records()) : wanted;
  }

  /** Statements for every connection: pragmas and session settings. */
  List<String> init() throws IOException {
    return lines("knobscope.init");
  }

  /** Statements that create the table, before a load. */
  List<String> schema() throws IOException {
    return loading() ? lines("knobscope.schema") : List.of();
  }

  Readback readback() throws IOException {
    String file = properties.getProperty("knobscope.readback");
    return file == null ? Readback.NOTHING : Readback.parse(Path.of(file));
  }

  long warmupNs() {
    return seconds("knobscope.warmup.s", "0");
  }

  long measureNs() {
    return seconds("knobscope.measure.s", "5");
  }

  /** So many operations end the measured window early, after a few intervals at least. */
  long measureOperations() {
    return Long.parseLong(properties.getProperty("knobscope.measure.operations", String.valueOf(Long.MAX_VALUE)));
  }

  long intervalNs() {
    return Long.parseLong(properties.getProperty("knobscope.interval.ms", "1000")) * 1_000_000;
  }

  /** Nothing to load and nothing to measure: the client connects, reads knobs back and ends. */
  boolean connectingOnly() {
    return !loading() && measureNs() == 0;
  }

  /**
   * Nothing to measure: what a {@link Witness} does instead. {@code testify}: it writes rows until the server is killed,
   * and looks which of them are there afterwards; {@code write}: it only writes; {@code look}: it looks for what another
   * one wrote. Empty: there is a load.
   */
  String witness() {
    return properties.getProperty("knobscope.witness", "");
  }

  /** How many rows another witness wrote. */
  int witnessedRows() {
    return Integer.parseInt(properties.getProperty("knobscope.witness.rows", "0"));
  }

  String firstField() {
    return properties.getProperty("fieldnameprefix", "field") + "0";
  }

  Path out() {
    return Path.of(properties.getProperty("knobscope.out", "."));
  }

  private long seconds(String property, String otherwise) {
    return (long) (Double.parseDouble(properties.getProperty(property, otherwise)) * 1e9);
  }

  private List<String> lines(String property) throws IOException {
    String file = properties.getProperty(property);
    if (file == null) {
      return List.of();
    }
    return Files.readAllLines(Path.of(file)).stream().filter(line -> !line.isBlank()).toList();
  }
}
