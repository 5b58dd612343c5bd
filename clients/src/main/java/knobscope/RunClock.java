package knobscope;

import java.io.IOException;
import java.time.Instant;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/** Leads one run through warm-up and measured window, closing intervals on time, and ends the client after it. */
final class RunClock extends Thread {
  /** This long, and for two intervals (which are never exactly on time), nothing but failures: hopeless. */
  private static final long HOPELESS_NS = 1_000_000_000L;
  /** A window has so many intervals, however soon its operations are done: their scatter tells how steady it was. */
  private static final int FEWEST_INTERVALS = 4;

  private final Settings settings;
  private final IntervalLog log;
  private final Runnable afterwards;
  private final CountDownLatch over = new CountDownLatch(1);
  private volatile Instant endedAt;
  private long lastHopefulNs = System.nanoTime();

  /** {@code afterwards} ends the client, once its results are written. */
  RunClock(Settings settings, IntervalLog log, Runnable afterwards) {
    super("knobscope-clock");
    this.settings = settings;
    this.log = log;
    this.afterwards = afterwards;
    setPriority(MAX_PRIORITY);
    setDaemon(true);
  }

  /** True once the measured window has ended: no operation may begin any more. */
  boolean isOver() {
    return endedAt != null;
  }

  /** Waits some seconds, or until the measured window has ended. */
  void pause(double seconds) throws InterruptedException {
    over.await((long) (seconds * 1e9), TimeUnit.NANOSECONDS);
  }

  @Override
  public void run() {
    try {
      long fromNs = pass(System.nanoTime(), settings.warmupNs(), Long.MAX_VALUE, at -> {
        StatementCounts.SHARED.openWindow();
        Events.emitTime("measuring", at);
      });
      log.openWindow();
      long toNs = pass(fromNs, settings.measureNs(), settings.measureOperations(), this::end);
      finish(fromNs, toNs);
    } catch (RuntimeException | IOException e) {
      Failures.die(Failures.describe(e));
    }
  }

  private void end(Instant at) {
    endedAt = at;
    StatementCounts.SHARED.closeWindow();
    over.countDown();
  }

  /**
   * Closes interval after interval until {@code lengthNs} are over or {@code enough} operations are done. The last one
   * is cut off, {@code atEnd} is told, and only then is it evaluated. Returns when exactly it ended.
   */
  private long pass(long fromNs, long lengthNs, long enough, Consumer<Instant> atEnd) {
    long dueNs = 0;
    long done = 0;
    for (int intervals = 1;; intervals++) {
      dueNs = nextEnd(dueNs, lengthNs);
      sleepUntil(fromNs + dueNs);
      IntervalLog.Interval interval = log.cut();
      done += interval.ok();
      boolean isLast = dueNs == lengthNs || (done >= enough && intervals >= FEWEST_INTERVALS);
      if (isLast) {
        atEnd.accept(Instant.now());
      }
      judge(log.add(interval), interval.endNs());
      if (isLast) {
        return interval.endNs();
      }
    }
  }

  /** A rest of less than half an interval belongs to the last one: there are no slivers. */
  private long nextEnd(long dueNs, long lengthNs) {
    long next = dueNs + settings.intervalNs();
    return lengthNs - next < settings.intervalNs() / 2 ? lengthNs : next;
  }

  /** Ends a run in which nothing works any more, for instance because the server is gone; a lock of another passes. */
  private void judge(Sample.Stats all, long endNs) {
    if (all.ok() > 0 || all.failed() == 0 || all.retried() > 0) {
      lastHopefulNs = endNs;
    } else if (endNs - lastHopefulNs >= Math.max(HOPELESS_NS, settings.intervalNs() * 3 / 2)) {
      Failures.die("no operation succeeds any more; the last was " + Failures.last());
    }
  }

  private void finish(long fromNs, long toNs) throws IOException {
    Sample.Stats all = log.window().get(IntervalLog.ALL);
    if (all.ok() == 0) {
      Failures.die("no operation succeeded in the measured window (" + all.failed() + " failed; the last was "
          + Failures.last() + ")");
    }
    ResultFiles.write(settings.out(), log, fromNs, toNs);
    Events.emitTime("measured", endedAt);
    afterwards.run();
  }

  private static void sleepUntil(long deadlineNs) {
    for (long left = deadlineNs - System.nanoTime(); left > 0; left = deadlineNs - System.nanoTime()) {
      LockSupport.parkNanos(left);
    }
  }
}
