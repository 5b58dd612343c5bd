package knobscope;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DriverException;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.cql.AsyncResultSet;
import com.datastax.oss.driver.api.core.cql.BoundStatement;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.Row;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Queue;
import java.util.Set;
import java.util.Vector;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/**
 * YCSB for Cassandra: one session, which all client threads share, as the driver wants it. Properties:
 * {@code cassandra.port} on 127.0.0.1, {@code cassandra.keyspace}, {@code cassandra.datacenter}. A scan goes in order of
 * tokens, as there is no order of keys.
 */
public final class CassandraBinding extends DB implements ReadsBack, CountsRecords {
  private static final int IN_FLIGHT = 64;
  private static final Duration PATIENCE = Duration.ofSeconds(20);
  private static final Duration COMPACTION = Duration.ofMinutes(10);
  private static final Duration PAUSE = Duration.ofMillis(50);
  private static final Duration QUIET = Duration.ofSeconds(2);

  private static CqlSession session;
  private static int users;
  private static boolean schemaDone;
  private static final Map<String, PreparedStatement> PREPARED = new ConcurrentHashMap<>();

  private final Queue<CompletionStage<AsyncResultSet>> waiting = new ArrayDeque<>();
  private boolean loading;
  private String keyspace;
  private List<String> allColumns;

  @Override
  public void init() throws DBException {
    Settings settings = new Settings(getProperties());
    Properties p = getProperties();
    loading = settings.loading();
    keyspace = Statements.name(p.getProperty("cassandra.keyspace", "ycsb"));
    String prefix = p.getProperty("fieldnameprefix", "field");
    int count = Integer.parseInt(p.getProperty("fieldcount", "10"));
    allColumns = IntStream.range(0, count).mapToObj(i -> prefix + i).toList();
    try {
      synchronized (CassandraBinding.class) {
        users++;
        if (session == null) {
          session = open(p);
          if (!schemaDone) {
            settings.schema().forEach(session::execute);
            schemaDone = true;
          }
          setUp(settings);
        }
      }
    } catch (IOException | DriverException e) {
      throw new DBException(e);
    }
  }

  private static CqlSession open(Properties p) {
    DriverConfigLoader config = DriverConfigLoader.programmaticBuilder()
        .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, PATIENCE)
        .withDuration(DefaultDriverOption.CONNECTION_INIT_QUERY_TIMEOUT, PATIENCE)
        .withString(DefaultDriverOption.REQUEST_CONSISTENCY, "ONE").build();
    return CqlSession.builder().withConfigLoader(config)
        .addContactPoint(new InetSocketAddress("127.0.0.1", Integer.parseInt(p.getProperty("cassandra.port", "9042"))))
        .withLocalDatacenter(p.getProperty("cassandra.datacenter", "datacenter1")).build();
  }

  /**
   * No statement waits for a flush or a compaction: a select among the fixed ones lists what is under way, and is
   * repeated until it has had no row for a while. A table that is in one file already has nothing to wait for.
   */
  private static void setUp(Settings settings) throws IOException, DBException {
    try {
      for (String statement : settings.init()) {
        long start = System.nanoTime();
        long busy = start;
        do {
          LockSupport.parkNanos(PAUSE.toNanos());
          if (session.execute(statement).one() != null) {
            busy = System.nanoTime();
          }
          if (busy - start > COMPACTION.toNanos()) {
            throw new DBException("still a row after " + COMPACTION + ": " + statement);
          }
        } while (statement.startsWith("select") && System.nanoTime() - busy < QUIET.toNanos());
      }
    } catch (DriverException e) {
      throw new RefusedException(e);
    }
  }

  @Override
  public void cleanup() throws DBException {
    try {
      while (!waiting.isEmpty()) {
        waiting.remove().toCompletableFuture().join();
      }
    } catch (RuntimeException e) {
      throw new DBException(e);
    }
    synchronized (CassandraBinding.class) {
      if (--users == 0) {
        session.close();
        session = null;
        PREPARED.clear();
      }
    }
  }

  private static BoundStatement bind(String cql, Object... values) {
    return PREPARED.computeIfAbsent(cql, session::prepare).bind(values);
  }

  private String table(String table) {
    return keyspace + "." + Statements.name(table);
  }

  private List<String> columns(Set<String> fields) {
    return fields == null ? allColumns : new ArrayList<>(fields);
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    List<String> columns = columns(fields);
    String cql = "SELECT " + String.join(", ", columns) + " FROM " + table(table) + " WHERE YCSB_KEY = ?";
    Row row = session.execute(bind(cql, key)).one();
    if (row == null) {
      return Status.NOT_FOUND;
    }
    copy(row, columns, result);
    return Status.OK;
  }

  @Override
  public Status scan(String table, String start, int count, Set<String> fields,
      Vector<HashMap<String, ByteIterator>> result) {
    List<String> columns = columns(fields);
    String cql = "SELECT " + String.join(", ", columns) + " FROM " + table(table)
        + " WHERE token(YCSB_KEY) >= token(?) LIMIT ?";
    for (Row row : session.execute(bind(cql, start, count))) {
      HashMap<String, ByteIterator> values = new HashMap<>();
      copy(row, columns, values);
      result.add(values);
    }
    return Status.OK;
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    List<String> columns = new ArrayList<>(values.keySet());
    List<Object> texts = texts(values, columns);
    texts.add(key);
    String cql = "UPDATE " + table(table) + " SET " + String.join(" = ?, ", columns) + " = ? WHERE YCSB_KEY = ?";
    session.execute(bind(cql, texts.toArray()));
    return Status.OK;
  }

  /** A load does not wait for each answer. */
  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    List<String> columns = new ArrayList<>(values.keySet());
    List<Object> texts = texts(values, columns);
    texts.add(0, key);
    String cql = "INSERT INTO " + table(table) + " (YCSB_KEY, " + String.join(", ", columns) + ") VALUES (?"
        + ", ?".repeat(columns.size()) + ")";
    BoundStatement insert = bind(cql, texts.toArray());
    if (!loading) {
      session.execute(insert);
      return Status.OK;
    }
    waiting.add(session.executeAsync(insert));
    if (waiting.size() > IN_FLIGHT) {
      waiting.remove().toCompletableFuture().join();
    }
    return Status.BATCHED_OK;
  }

  private static List<Object> texts(Map<String, ByteIterator> values, List<String> columns) {
    List<Object> texts = new ArrayList<>();
    columns.forEach(column -> texts.add(values.get(Statements.name(column)).toString()));
    return texts;
  }

  @Override
  public Status delete(String table, String key) {
    session.execute(bind("DELETE FROM " + table(table) + " WHERE YCSB_KEY = ?", key));
    return Status.OK;
  }

  private static void copy(Row row, List<String> columns, Map<String, ByteIterator> result) {
    for (int i = 0; i < columns.size(); i++) {
      String value = row.getString(i);
      if (value != null) {
        result.put(columns.get(i), new StringByteIterator(value));
      }
    }
  }

  @Override
  public Map<String, String> readAll(String query) throws DBException {
    Map<String, String> values = new LinkedHashMap<>();
    try {
      for (Row row : session.execute(query)) {
        if (row.getString(1) != null) {
          values.put(row.getString(0), row.getString(1));
        }
      }
    } catch (DriverException e) {
      throw new DBException(e);
    }
    return values;
  }

  @Override
  public String readOne(String query) throws DBException {
    try {
      Row row = session.execute(query).one();
      return row == null || row.isNull(0) ? null : String.valueOf(row.getObject(0));
    } catch (DriverException e) {
      throw new DBException(e);
    }
  }

  /** Page by page: the driver's patience is for a page, and COUNT(*) would have it for all rows. */
  @Override
  public long countRecords(String table) throws DBException {
    try {
      long count = 0;
      for (Row ignored : session.execute("SELECT YCSB_KEY FROM " + table(table))) {
        count++;
      }
      return count;
    } catch (DriverException e) {
      throw new DBException(e);
    }
  }
}
