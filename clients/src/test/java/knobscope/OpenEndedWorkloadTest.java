package knobscope;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.Vector;
import org.junit.jupiter.api.Test;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.Status;
import site.ycsb.WorkloadException;
import site.ycsb.measurements.Measurements;

class OpenEndedWorkloadTest {
  /** Accepts everything and counts scans. */
  private static final class CountingDB extends DB {
    private int scans;

    @Override
    public Status scan(String table, String key, int count, Set<String> fields,
        Vector<HashMap<String, ByteIterator>> result) {
      scans++;
      return Status.OK;
    }

    @Override
    public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
      return Status.OK;
    }

    @Override
    public Status update(String table, String key, Map<String, ByteIterator> values) {
      return Status.OK;
    }

    @Override
    public Status insert(String table, String key, Map<String, ByteIterator> values) {
      return Status.OK;
    }

    @Override
    public Status delete(String table, String key) {
      return Status.OK;
    }
  }

  @Test
  void keysOfScansWithInsertsAreDrawnQuicklyThoughTheRunHasNoEnd() throws WorkloadException {
    Properties properties = new Properties();
    properties.setProperty("recordcount", "1000");
    properties.setProperty("requestdistribution", "zipfian");
    properties.setProperty("readproportion", "0");
    properties.setProperty("updateproportion", "0");
    properties.setProperty("scanproportion", "0.95");
    properties.setProperty("insertproportion", "0.05");
    Measurements.setProperties(properties);
    OpenEndedWorkload workload = new OpenEndedWorkload();
    workload.init(properties);
    assertEquals(String.valueOf(Integer.MAX_VALUE), properties.getProperty("operationcount"));

    CountingDB db = new CountingDB();
    long start = System.nanoTime();
    for (int i = 0; i < 2000; i++) {
      workload.doTransaction(db, null);
    }
    double seconds = (System.nanoTime() - start) / 1e9;
    assertTrue(db.scans > 1800, "scans: " + db.scans);
    assertTrue(seconds < 2, "with YCSB's own reading of an endless run this takes many seconds, here " + seconds);
  }
}
