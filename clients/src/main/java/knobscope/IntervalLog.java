package knobscope;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Counts and latencies of all operations, cut into intervals. Any workload may record into {@link #SHARED}: the timed
 * binding does it for single operations, a transaction workload does it for whole transactions.
 */
public final class IntervalLog {
  public static final IntervalLog SHARED = new IntervalLog();
  /** Name of the rows that hold all operations together. */
  public static final String ALL = "ALL";

  private final Map<String, Operation> operations = new ConcurrentHashMap<>();
  private final List<Row> rows = new ArrayList<>();
  private Map<String, Sample> window = new TreeMap<>();

  /** One kind of operation (or ALL) in one interval, which ended at {@code endNs} (System.nanoTime). */
  record Row(long endNs, String operation, Sample.Stats stats) {}

  /** Records one finished operation; called by many threads. */
  public void record(String operation, boolean ok, long nanos) {
    operation(operation).record(ok, nanos);
  }

  /** Records an attempt that is to be repeated, e.g. after a deadlock. */
  void retry(String operation) {
    operation(operation).retry();
  }

  Operation operation(String name) {
    Operation known = operations.get(name);
    return known != null ? known : operations.computeIfAbsent(name, n -> new Operation());
  }

  /** What was recorded in one interval, by operation; to be {@link #add}ed before the next one is cut off. */
  record Interval(long endNs, Map<String, Sample> samples) {
    /** Operations of all kinds that succeeded. */
    long ok() {
      return samples.values().stream().mapToLong(Sample::ok).sum();
    }
  }

  /** Ends the current interval and begins the next one: quick, whatever is done with the result later. */
  Interval cut() {
    Map<String, Sample> samples = new TreeMap<>();
    operations.forEach((name, operation) -> samples.put(name, operation.take()));
    return new Interval(System.nanoTime(), samples);
  }

  /** Takes an interval into rows and sums; returns the figures of all its operations together. */
  Sample.Stats add(Interval interval) {
    Sample all = Sample.empty();
    interval.samples().values().forEach(all::add);
    interval.samples().put(ALL, all);
    interval.samples().forEach((name, sample) -> {
      window.computeIfAbsent(name, n -> Sample.empty()).add(sample);
      rows.add(new Row(interval.endNs(), name, sample.stats()));
    });
    return all.stats();
  }

  /** Forgets the sums so far (not the rows): the measured window begins with the next interval added. */
  void openWindow() {
    window = new TreeMap<>();
  }

  /** Sums since {@link #openWindow}, by operation, ALL included. */
  Map<String, Sample.Stats> window() {
    Map<String, Sample.Stats> sums = new TreeMap<>();
    window.forEach((name, sample) -> sums.put(name, sample.stats()));
    return sums;
  }

  /** Every interval in order of time: its operations and ALL. */
  List<Row> rows() {
    return List.copyOf(rows);
  }
}
