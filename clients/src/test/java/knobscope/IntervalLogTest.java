package knobscope;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class IntervalLogTest {
  private static final long US = 1000;

  @Test
  void knownLatenciesGiveKnownPercentiles() {
    IntervalLog log = new IntervalLog();
    for (int us = 1; us <= 1000; us++) {
      log.record("READ", true, us * US);
    }
    Sample.Stats stats = log.add(log.cut());
    assertEquals(1000, stats.ok());
    assertEquals(500.5, stats.meanUs(), 0.6);
    assertEquals(500, stats.p50Us(), 0.6);
    assertEquals(950, stats.p95Us(), 1);
    assertEquals(990, stats.p99Us(), 1.1);
    assertEquals(999, stats.p999Us(), 1.1);
    assertEquals(1000, stats.maxUs(), 1.1);
  }

  @Test
  void failedOperationsAreCountedAndHaveNoLatency() {
    IntervalLog log = new IntervalLog();
    log.record("UPDATE", true, 10 * US);
    log.record("UPDATE", false, 1_000_000 * US);
    log.record("UPDATE", false, 1_000_000 * US);
    Sample.Stats stats = log.add(log.cut());
    assertEquals(1, stats.ok());
    assertEquals(2, stats.failed());
    assertEquals(10, stats.maxUs(), 0.02);
  }

  @Test
  void anIntervalHoldsOnlyWhatWasRecordedInIt() {
    IntervalLog log = new IntervalLog();
    log.record("READ", true, 100 * US);
    log.add(log.cut());
    log.record("READ", true, 200 * US);
    log.record("SCAN", false, 1 * US);
    log.add(log.cut());
    List<String> rows = log.rows().stream().map(
        row -> row.operation() + " " + row.stats().ok() + " " + row.stats().failed()).toList();
    assertEquals(List.of("ALL 1 0", "READ 1 0", "ALL 1 1", "READ 1 0", "SCAN 0 1"), rows);
    assertEquals(200, log.rows().get(3).stats().p50Us(), 0.3);
  }

  @Test
  void theWindowLeavesTheWarmUpOutAndSumsItsIntervals() {
    IntervalLog log = new IntervalLog();
    log.record("READ", true, 9_000 * US);
    log.add(log.cut());
    log.openWindow();
    for (int interval = 0; interval < 3; interval++) {
      log.record("READ", true, 50 * US);
      log.record("UPDATE", true, 70 * US);
      log.add(log.cut());
    }
    Map<String, Sample.Stats> window = log.window();
    assertEquals(3, window.get("READ").ok());
    assertEquals(50, window.get("READ").maxUs(), 0.1);
    assertEquals(6, window.get(IntervalLog.ALL).ok());
    assertEquals(60, window.get(IntervalLog.ALL).meanUs(), 0.1);
  }

  @Test
  void nothingIsLostBetweenIntervals() throws InterruptedException {
    IntervalLog log = new IntervalLog();
    int perThread = 200_000;
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      Thread thread = new Thread(() -> {
        for (int n = 0; n < perThread; n++) {
          log.record("READ", n % 10 != 0, n);
        }
      });
      thread.start();
      threads.add(thread);
    }
    long ok = 0;
    long failed = 0;
    boolean running = true;
    while (running) {
      running = threads.stream().anyMatch(Thread::isAlive);
      Sample.Stats stats = log.add(log.cut());
      ok += stats.ok();
      failed += stats.failed();
    }
    assertEquals(4L * perThread, ok + failed);
    assertEquals(4L * perThread / 10, failed);
    assertTrue(log.rows().size() > 2);
  }

  @Test
  void anOperationLongerThanTheHistogramIsKeptAsItsLongest() {
    IntervalLog log = new IntervalLog();
    log.record("READ", true, Long.MAX_VALUE);
    assertEquals(3.6e9, log.add(log.cut()).maxUs(), 3.6e6);
  }
}
