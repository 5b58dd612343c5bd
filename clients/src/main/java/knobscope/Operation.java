package knobscope;

import java.util.concurrent.atomic.AtomicLong;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.Recorder;

/** Counts one kind of operation (READ, UPDATE, a transaction type) while many threads record into it. */
final class Operation {
  static final int DIGITS = 3; // a percentile is right to 0.1 %
  private static final long HIGHEST_NS = 3_600_000_000_000L;

  private final Recorder latencies = new Recorder(HIGHEST_NS, DIGITS);
  private final AtomicLong failed = new AtomicLong();
  private final AtomicLong retried = new AtomicLong();
  private Histogram recycled;

  /** Records one finished operation; only successful ones have a latency that means anything. */
  void record(boolean ok, long nanos) {
    if (ok) {
      latencies.recordValue(Math.min(nanos, HIGHEST_NS));
    } else {
      failed.incrementAndGet();
    }
  }

  /** Counts an attempt that is to be repeated; the operation itself is still under way. */
  void retry() {
    retried.incrementAndGet();
  }

  /** Everything since the last call, which starts the next interval. The sample is valid until the next call. */
  Sample take() {
    recycled = latencies.getIntervalHistogram(recycled);
    return new Sample(recycled, failed.getAndSet(0), retried.getAndSet(0));
  }

  static Histogram emptyHistogram() {
    return new Histogram(HIGHEST_NS, DIGITS);
  }
}
