package knobscope;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.Vector;
import org.rocksdb.ColumnFamilyDescriptor;
import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.ColumnFamilyOptions;
import org.rocksdb.ConfigOptions;
import org.rocksdb.DBOptions;
import org.rocksdb.FlushOptions;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.WriteOptions;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/**
 * YCSB for RocksDB, which lives in this process: one database for all client threads. Properties:
 * {@code rocksdb.dir}; {@code rocksdb.NAME} for options of the database or its column family as an OPTIONS file names
 * them; {@code rocksdb.table.NAME} for those of the block-based table; {@code rocksdb.write.sync} and
 * {@code rocksdb.write.disable_wal} for every write; {@code rocksdb.compacted}, whether data counts as loaded only when
 * no compaction is left to do.
 */
public final class RocksBinding extends DB implements ReadsBack, CountsRecords {
  private static final String PREFIX = "rocksdb.";
  private static final String TABLE = "rocksdb.table.";
  private static final String WRITE = "rocksdb.write.";
  private static final String DIRECTORY = "rocksdb.dir";
  private static final String COMPACTED = "rocksdb.compacted";
  private static final Set<String> OWN = Set.of(DIRECTORY, COMPACTED);
  private static final List<String> LEFT_TO_DO = List.of("rocksdb.mem-table-flush-pending",
      "rocksdb.num-running-flushes", "rocksdb.compaction-pending", "rocksdb.num-running-compactions");
  private static final long LOOK_MS = 50;

  private static RocksDB db;
  private static WriteOptions writing;
  private static Path directory;
  private static int users;

  @Override
  public void init() throws DBException {
    synchronized (RocksBinding.class) {
      users++;
      if (db == null) {
        open(getProperties());
      }
    }
  }

  private static void open(Properties properties) throws DBException {
    RocksDB.loadLibrary();
    directory = Path.of(properties.getProperty(DIRECTORY));
    Properties options = new Properties();
    Map<String, String> table = new TreeMap<>();
    for (String name : properties.stringPropertyNames()) {
      if (name.startsWith(TABLE)) {
        table.put(name.substring(TABLE.length()), properties.getProperty(name));
      } else if (name.startsWith(PREFIX) && !name.startsWith(WRITE) && !OWN.contains(name)) {
        options.setProperty(name.substring(PREFIX.length()), properties.getProperty(name));
      }
    }
    if (!table.isEmpty()) {
      List<String> parts = table.entrySet().stream().map(entry -> entry.getKey() + "=" + entry.getValue()).toList();
      options.setProperty("block_based_table_factory", "{" + String.join(";", parts) + "}");
    }
    try {
      Files.createDirectories(directory);
      DBOptions forDatabase = new DBOptions();
      ColumnFamilyOptions forFamily = new ColumnFamilyOptions();
      if (!options.isEmpty()) { // each parser skips what belongs to the other one; a slip shows in the read-back
        ConfigOptions lenient = new ConfigOptions().setIgnoreUnknownOptions(true);
        forDatabase = parsed(DBOptions.getDBOptionsFromProps(lenient, options), options);
        forFamily = parsed(ColumnFamilyOptions.getColumnFamilyOptionsFromProps(lenient, options), options);
      }
      forDatabase.setCreateIfMissing(true);
      List<ColumnFamilyHandle> handles = new ArrayList<>();
      ColumnFamilyDescriptor family = new ColumnFamilyDescriptor(RocksDB.DEFAULT_COLUMN_FAMILY, forFamily);
      db = RocksDB.open(forDatabase, directory.toString(), List.of(family), handles);
    } catch (RocksDBException | IOException e) {
      throw new RefusedException(e);
    }
    writing = new WriteOptions().setSync(flag(properties, "sync")).setDisableWAL(flag(properties, "disable_wal"));
  }

  private static boolean flag(Properties properties, String name) {
    return Boolean.parseBoolean(properties.getProperty(WRITE + name, "false"));
  }

  /** The parser of RocksDB answers nothing at all when it refuses a value. */
  private static <T> T parsed(T options, Properties from) throws RocksDBException {
    if (options == null) {
      throw new RocksDBException("not accepted as options of RocksDB: " + from);
    }
    return options;
  }

  /** After a load, what is still in memory goes to its files; a run ends by its clock, without this. */
  @Override
  public void cleanup() throws DBException {
    synchronized (RocksBinding.class) {
      if (--users > 0 || db == null) {
        return;
      }
      try (FlushOptions waiting = new FlushOptions().setWaitForFlush(true)) {
        db.flush(waiting);
        if (Boolean.parseBoolean(getProperties().getProperty(COMPACTED))) {
          awaitCompactions();
        }
        db.closeE();
        db = null;
      } catch (RocksDBException | InterruptedException e) {
        throw new DBException(e);
      }
    }
  }

  /** Closing ends compactions where they are: every run would begin with them, and how far they got is chance. */
  private static void awaitCompactions() throws RocksDBException, InterruptedException {
    if (db.getOptions().disableAutoCompactions()) {
      return; // what is pending then stays so
    }
    while (isBusy()) {
      Thread.sleep(LOOK_MS);
    }
  }

  private static boolean isBusy() throws RocksDBException {
    for (String property : LEFT_TO_DO) {
      if (db.getLongProperty(property) > 0) {
        return true;
      }
    }
    return false;
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    try {
      byte[] value = db.get(bytes(key));
      if (value == null) {
        return Status.NOT_FOUND;
      }
      unpack(value, fields, result);
      return Status.OK;
    } catch (RocksDBException e) {
      throw new BindingException(e);
    }
  }

  @Override
  public Status scan(String table, String start, int count, Set<String> fields,
      Vector<HashMap<String, ByteIterator>> result) {
    try (RocksIterator rows = db.newIterator()) {
      for (rows.seek(bytes(start)); rows.isValid() && result.size() < count; rows.next()) {
        HashMap<String, ByteIterator> row = new HashMap<>();
        unpack(rows.value(), fields, row);
        result.add(row);
      }
      rows.status();
      return Status.OK;
    } catch (RocksDBException e) {
      throw new BindingException(e);
    }
  }

  /** A record is one value, so an update reads it, changes fields and writes all of it. */
  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    Map<String, ByteIterator> row = new HashMap<>();
    Status status = read(table, key, null, row);
    if (status.isOk()) {
      row.putAll(values);
      insert(table, key, row);
    }
    return status;
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    try {
      db.put(writing, bytes(key), pack(values));
      return Status.OK;
    } catch (RocksDBException e) {
      throw new BindingException(e);
    }
  }

  @Override
  public Status delete(String table, String key) {
    try {
      db.delete(writing, bytes(key));
      return Status.OK;
    } catch (RocksDBException e) {
      throw new BindingException(e);
    }
  }

  /** The options in force from the file that RocksDB wrote when it opened the database, and those of writes. */
  @Override
  public Map<String, String> readAll(String query) throws DBException {
    Map<String, String> values = new LinkedHashMap<>();
    values.put("sync", String.valueOf(writing.sync()));
    values.put("disable_wal", String.valueOf(writing.disableWAL()));
    try {
      for (String line : Files.readAllLines(newestOptions())) {
        int sign = line.indexOf('=');
        if (sign > 0 && !line.startsWith("[")) {
          values.putIfAbsent(line.substring(0, sign).trim(), line.substring(sign + 1).trim());
        }
      }
    } catch (IOException e) {
      throw new DBException(e);
    }
    return values;
  }

  private static Path newestOptions() throws IOException {
    Path newest = null;
    try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, "OPTIONS-*")) {
      for (Path file : files) {
        if (newest == null || file.getFileName().compareTo(newest.getFileName()) > 0) {
          newest = file;
        }
      }
    }
    if (newest == null) {
      throw new IOException("no OPTIONS file in " + directory);
    }
    return newest;
  }

  /** Knows one question: {@code version}. */
  @Override
  public String readOne(String query) throws DBException {
    return query.equals("version") ? RocksDB.rocksdbVersion().toString() : readAll(query).get(query);
  }

  /** Opens the database once more when the load has closed it. */
  @Override
  public long countRecords(String table) throws DBException {
    long records = 0;
    try (RocksIterator rows = db.newIterator()) {
      for (rows.seekToFirst(); rows.isValid(); rows.next()) {
        records++;
      }
    }
    return records;
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** Field after field: length and text of its name, length and text of its value. */
  private static byte[] pack(Map<String, ByteIterator> values) {
    List<byte[]> parts = new ArrayList<>();
    int size = 0;
    for (Map.Entry<String, ByteIterator> field : values.entrySet()) {
      for (byte[] part : List.of(bytes(field.getKey()), field.getValue().toArray())) {
        parts.add(part);
        size += Integer.BYTES + part.length;
      }
    }
    ByteBuffer buffer = ByteBuffer.allocate(size);
    parts.forEach(part -> buffer.putInt(part.length).put(part));
    return buffer.array();
  }

  private static void unpack(byte[] value, Set<String> fields, Map<String, ByteIterator> result) {
    ByteBuffer buffer = ByteBuffer.wrap(value);
    while (buffer.hasRemaining()) {
      String name = next(buffer);
      String content = next(buffer);
      if (fields == null || fields.contains(name)) {
        result.put(name, new StringByteIterator(content));
      }
    }
  }

  private static String next(ByteBuffer buffer) {
    byte[] part = new byte[buffer.getInt()];
    buffer.get(part);
    return new String(part, StandardCharsets.UTF_8);
  }
}
