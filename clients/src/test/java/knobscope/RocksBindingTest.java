package knobscope;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import site.ycsb.DBException;
import site.ycsb.RandomByteIterator;

class RocksBindingTest {
  private static final int RECORDS = 20_000;

  @TempDir
  Path directory;

  private void load() throws DBException {
    Properties properties = new Properties();
    properties.setProperty("rocksdb.dir", directory.toString());
    properties.setProperty("rocksdb.write_buffer_size", "65536");
    properties.setProperty("rocksdb.max_write_buffer_number", "8");
    properties.setProperty("rocksdb.compacted", "true");
    RocksBinding binding = new RocksBinding();
    binding.setProperties(properties);
    binding.init();
    for (int record = 0; record < RECORDS; record++) {
      String key = "user" + Integer.reverse(record); // in no order, so that files overlap
      assertTrue(binding.insert("usertable", key, Map.of("field0", new RandomByteIterator(500))).isOk());
    }
    binding.cleanup();
  }

  @Test
  void loadedDataHasNothingLeftToCompact() throws Exception {
    load();
    try (Options options = new Options().setDisableAutoCompactions(true);
        RocksDB loaded = RocksDB.open(options, directory.toString())) {
      assertEquals(0, loaded.getLongProperty("rocksdb.compaction-pending"));
      int files = Integer.parseInt(loaded.getProperty("rocksdb.num-files-at-level0"));
      assertTrue(files < options.level0FileNumCompactionTrigger());
    }
  }
}
