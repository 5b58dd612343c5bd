package knobscope;

import org.HdrHistogram.Histogram;

/** Operations of one kind over some time: latencies of those that succeeded (nanoseconds), and how many failed or had to be repeated. */
final class Sample {
  private final Histogram latencies;
  private long failed;
  private long retried;

  Sample(Histogram latencies, long failed, long retried) {
    this.latencies = latencies;
    this.failed = failed;
    this.retried = retried;
  }

  static Sample empty() {
    return new Sample(Operation.emptyHistogram(), 0, 0);
  }

  void add(Sample other) {
    latencies.add(other.latencies);
    failed += other.failed;
    retried += other.retried;
  }

  long ok() {
    return latencies.getTotalCount();
  }

  Stats stats() {
    return new Stats(ok(), failed, latencies.getMean() / 1000, percentile(50),
        percentile(95), percentile(99), percentile(99.9), latencies.getMaxValue() / 1000.0, retried);
  }

  private double percentile(double share) {
    return latencies.getValueAtPercentile(share) / 1000.0;
  }

  /** The figures of a sample; latencies in microseconds, of no meaning when {@code ok} is 0. */
  record Stats(long ok, long failed, double meanUs, double p50Us, double p95Us, double p99Us, double p999Us,
      double maxUs, long retried) {}
}
