package knobscope;

import java.io.IOException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import com.fasterxml.jackson.core.JsonGenerator;
import site.ycsb.DB;
import site.ycsb.DBException;

/** What the threads of one client share: who is connected, when to start, who has finished. */
final class ClientRun {
  /** How long operations may still take after the window, before the data is checked all the same. */
  private static final int REST_S = 10;
  /** How long they may take before the values in force are not read back once more. */
  private static final int FREE_S = 1;

  private static ClientRun shared;

  private final Settings settings;
  private final Readback readback;
  private final RunClock clock;
  private final CountDownLatch allConnected;
  private final CountDownLatch never = new CountDownLatch(1);
  private final CountDownLatch atRest;
  private final List<Map<String, String>> effective = new ArrayList<>();
  private volatile DB first; // the connection that `effective` begins with
  private volatile Closing closing;
  private int finished;

  private ClientRun(Settings settings) throws IOException {
    this.settings = settings;
    readback = settings.readback();
    clock = new RunClock(settings, IntervalLog.SHARED, this::close);
    allConnected = new CountDownLatch(settings.threads());
    atRest = new CountDownLatch(settings.threads());
    Thread.setDefaultUncaughtExceptionHandler((thread, error) -> Failures.die(Failures.describe(error)));
    // YCSB ends with exit code 0 whatever went wrong; every regular end of ours goes around this hook.
    Runtime.getRuntime().addShutdownHook(new Thread(() -> Failures.die("YCSB ended before its time")));
  }

  /** The run that all threads of this process belong to. */
  static synchronized ClientRun of(Properties properties) throws IOException {
    if (shared == null) {
      Events.emit("started", json -> json.writeNumberField("pid", ProcessHandle.current().pid()));
      shared = new ClientRun(new Settings(properties));
    }
    return shared;
  }

  /** A new object of the binding under test, connected. */
  DB connect() throws DBException {
    try {
      DB binding = (DB) Class.forName(settings.binding()).getDeclaredConstructor().newInstance();
      binding.setProperties(settings.properties());
      binding.init();
      return binding;
    } catch (ReflectiveOperationException | ClassCastException e) {
      throw new DBException("cannot make the binding " + settings.binding(), e);
    }
  }

  /** Reads knobs back and returns when every thread has done so; the last one to come starts the clock. */
  void awaitOthers(DB binding) throws DBException, InterruptedException {
    Map<String, String> values = readback.ask(binding);
    synchronized (this) {
      effective.add(values);
      first = effective.size() == 1 ? binding : first;
      // Only now: threads that the DBMS made for itself while it was opened have the name of the thread that made them.
      Thread.currentThread().setName("session-" + effective.size());
      if (effective.size() == settings.threads()) {
        Events.emit("connected", this::writeConnected);
        if (settings.connectingOnly()) {
          Runtime.getRuntime().halt(0);
        } else if (!settings.witness().isEmpty()) {
          witness(binding);
        } else if (!settings.loading()) {
          clock.start();
        }
      }
    }
    allConnected.countDown();
    allConnected.await();
  }

  /** Instead of a load: rows until the server is gone, and what is left of them when it is back. */
  private void witness(DB binding) throws DBException, InterruptedException {
    Witness witness = new Witness(this::connect, settings.table(), settings.firstField());
    switch (settings.witness()) {
      case "testify" -> {
        Witness.Testimony told = witness.testify(binding, () -> Events.emitTime("witnessing", Instant.now()));
        Events.emit("witnessed", json -> {
          json.writeNumberField("lost", told.lost());
          json.writeNumberField("lost_ns", told.lostNs());
          json.writeNumberField("end_ms", told.endMillis());
        });
      }
      case "write" -> witness.write(binding, () -> Events.emitTime("acknowledged", Instant.now()));
      case "look" -> {
        int lost = witness.countLost(binding, settings.witnessedRows());
        Events.emit("witnessed", json -> json.writeNumberField("lost", lost));
      }
      default -> throw new DBException("no such witness: " + settings.witness());
    }
    Runtime.getRuntime().halt(0);
  }

  private static void writeEffective(JsonGenerator json, Map<String, String> values) throws IOException {
    json.writeObjectFieldStart("effective");
    for (Map.Entry<String, String> knob : values.entrySet()) {
      json.writeStringField(knob.getKey(), knob.getValue());
    }
    json.writeEndObject();
  }

  private void writeConnected(JsonGenerator json) throws IOException {
    writeEffective(json, effective.get(0));
    json.writeArrayFieldStart("disagree");
    for (Readback.Disagreement disagreement : Readback.compare(effective)) {
      json.writeStartObject();
      json.writeStringField("knob", disagreement.knob());
      json.writeArrayFieldStart("values");
      for (String value : disagreement.values()) {
        json.writeString(value);
      }
      json.writeEndArray();
      json.writeEndObject();
    }
    json.writeEndArray();
  }

  /** Holds a thread back for good once the window is over: the DBMS sees no load that is not measured. */
  void passGate() {
    if (clock.isOver()) {
      atRest.countDown();
      try {
        never.await();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  void closeWith(Closing workload) {
    closing = workload;
  }

  void pause(double seconds) {
    try {
      clock.pause(seconds);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** After the measured window: waits for operations under way, has data checked and knobs read back, ends the client. */
  private void close() {
    try {
      List<Closing.Check> checks = List.of();
      if (closing != null) {
        atRest.await(REST_S, TimeUnit.SECONDS);
        checks = closing.afterRun(connect());
      }
      // A connection serves one thread at a time; an operation that takes longer is not waited for.
      boolean isFree = atRest.await(FREE_S, TimeUnit.SECONDS);
      emitChecks(checks, isFree ? readback.ask(first) : Map.of());
      Runtime.getRuntime().halt(0);
    } catch (DBException | InterruptedException | RuntimeException e) {
      Failures.die("cannot check the data: " + Failures.describe(e));
    }
  }

  private static void emitChecks(List<Closing.Check> checks, Map<String, String> effective) {
    Events.emit("checked", json -> {
      writeEffective(json, effective);
      json.writeArrayFieldStart("checks");
      for (Closing.Check check : checks) {
        json.writeStartObject();
        json.writeStringField("name", check.name());
        json.writeBooleanField("holds", check.holds());
        json.writeStringField("detail", check.detail());
        json.writeEndObject();
      }
      json.writeEndArray();
    });
  }

  /** A loading thread has stored its share; after the last one the records are counted and the client ends. */
  synchronized void finishLoading() throws DBException {
    if (!settings.loading() || ++finished < settings.threads()) {
      return;
    }
    DB binding = connect();
    if (closing != null) {
      closing.afterLoad(binding);
    }
    if (!(binding instanceof CountsRecords counter)) {
      throw new DBException(settings.binding() + " cannot count records");
    }
    long records = counter.countRecords(settings.table());
    binding.cleanup();
    if (records != settings.records()) {
      Failures.die("loaded " + records + " records instead of " + settings.records() + "; last failure: "
          + Failures.last());
    }
    Events.emit("loaded", json -> json.writeNumberField("records", records));
    Runtime.getRuntime().halt(0);
  }
}
