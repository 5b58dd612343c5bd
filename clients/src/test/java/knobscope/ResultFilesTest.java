package knobscope;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ResultFilesTest {
  private static IntervalLog logWithAnIdleInterval() {
    IntervalLog log = new IntervalLog();
    log.record("READ", true, 2_000);
    log.record("UPDATE", false, 2_000);
    log.add(log.cut());
    log.add(log.cut());
    return log;
  }

  @Test
  void anIdleIntervalKeepsItsRowAndHasNoLatency() {
    List<String> lines = ResultFiles.intervals(logWithAnIdleInterval(), 0).lines()
        .map(line -> line.replaceFirst("^[0-9.]+", "T")).toList();
    assertEquals(List.of("t_s,op,ops,failed,mean_us,p50_us,p95_us,p99_us,max_us",
        "T,ALL,1,1,2.000,2.000,2.000,2.000,2.000", "T,READ,1,0,2.000,2.000,2.000,2.000,2.000",
        "T,UPDATE,0,1,,,,,", "T,ALL,0,0,,,,,"), lines);
  }

  @Test
  void latenciesOfOperationsThatNeverWorkedAreNull() throws IOException {
    String json = ResultFiles.summary(logWithAnIdleInterval().window(), Map.of(), 1.5);
    assertTrue(json.startsWith("{\"window_s\":1.5,\"operations\":{\"ALL\":{\"ok\":1,\"failed\":1,\"mean_us\":2"), json);
    assertTrue(json.contains("\"UPDATE\":{\"ok\":0,\"failed\":1,\"mean_us\":null,\"p50_us\":null"), json);
  }
}
