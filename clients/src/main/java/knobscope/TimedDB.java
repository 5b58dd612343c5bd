package knobscope;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;

/**
 * What YCSB is told to drive ({@code -db knobscope.TimedDB}): passes every operation on to the binding named by
 * {@code knobscope.db} and records how long it took and whether it worked. An operation that fails is counted, never
 * the end of a thread.
 */
public final class TimedDB extends DB {
  private static final ThreadLocal<TimedDB> OF_THREAD = new ThreadLocal<>();

  private DB binding;
  private ClientRun run;
  private String current;
  private SessionLog log; // null: nobody asked for one

  /** Connects, reads knobs back, waits for the other threads. YCSB goes on without a thread that fails; we do not. */
  @Override
  public void init() {
    try {
      OF_THREAD.set(this);
      run = ClientRun.of(getProperties());
      binding = run.connect();
      String question = getProperties().getProperty(Settings.SESSION_THREAD);
      log = question == null ? null : SessionLog.open(question, binding);
      run.awaitOthers(binding);
    } catch (RefusedException e) {
      Failures.die("refused", Failures.describe(e));
    } catch (DBException | IOException | InterruptedException | RuntimeException e) {
      Failures.die("cannot connect: " + Failures.describe(e));
    }
  }

  /** Reached after a load only: a run ends by its clock. */
  @Override
  public void cleanup() {
    try {
      binding.cleanup();
    } catch (DBException | RuntimeException e) {
      Failures.note("CLEANUP", Failures.describe(e));
    }
    try {
      run.finishLoading();
    } catch (DBException | RuntimeException e) {
      Failures.die("cannot count the records: " + Failures.describe(e) + "; last failure: " + Failures.last());
    }
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    return timed("READ", () -> binding.read(table, key, fields, result));
  }

  @Override
  public Status scan(String table, String startkey, int recordcount, Set<String> fields,
      Vector<HashMap<String, ByteIterator>> result) {
    return timed("SCAN", () -> binding.scan(table, startkey, recordcount, fields, result));
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    return timed("UPDATE", () -> binding.update(table, key, values));
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    return timed("INSERT", () -> binding.insert(table, key, values));
  }

  @Override
  public Status delete(String table, String key) {
    return timed("DELETE", () -> binding.delete(table, key));
  }

  /** The one of this thread: what YCSB hands to a workload is a wrapper around it. */
  public static TimedDB ofThread() {
    return OF_THREAD.get();
  }

  /** The operation that this thread is at, or was at last; null before the first one, and in other threads. */
  static String operationOfThread() {
    TimedDB own = OF_THREAD.get();
    return own == null ? null : own.current;
  }

  /** The binding under test, for a workload with transactions of its own. */
  public DB binding() {
    return binding;
  }

  /** Lets a workload check the data at the end; every thread may say so. */
  public void closeWith(Closing closing) {
    run.closeWith(closing);
  }

  /** Ends the client for a reason in one line; YCSB would only print where a workload failed. */
  public static void giveUp(Exception reason) {
    Failures.die(Failures.describe(reason));
  }

  /** Names of the operations that succeeded in the measured window, once it is over. */
  public static Set<String> measured() {
    return IntervalLog.SHARED.window().entrySet().stream().filter(one -> one.getValue().ok() > 0)
        .map(Map.Entry::getKey).collect(Collectors.toSet());
  }

  /** Counts an attempt at the operation under way that is to be repeated; holds the thread back after the window. */
  void retry() {
    IntervalLog.SHARED.retry(current);
    run.passGate();
  }

  /** Waits some seconds, or until the window is over. */
  public void pause(double seconds) {
    run.pause(seconds);
  }

  /** Does a call, or a whole transaction, and records how long it took and whether it worked. */
  public Status timed(String name, Supplier<Status> call) {
    run.passGate();
    current = name;
    long start = System.nanoTime();
    SessionLog.Span span = log == null ? null : log.begin(name, start);
    Status status;
    try {
      status = call.get();
    } catch (RuntimeException e) {
      record(name, false, start, span);
      Failures.note(name, Failures.describe(e));
      return Status.ERROR;
    }
    record(name, status.isOk(), start, span);
    if (!status.isOk()) {
      Failures.note(name, status.getName());
    }
    return status;
  }

  private static void record(String name, boolean ok, long start, SessionLog.Span span) {
    long end = System.nanoTime();
    IntervalLog.SHARED.record(name, ok, end - start);
    if (span != null) {
      span.end(end);
    }
  }
}
