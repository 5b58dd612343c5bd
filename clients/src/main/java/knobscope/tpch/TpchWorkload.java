package knobscope.tpch;

import java.io.IOException;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import knobscope.BindingException;
import knobscope.Closing;
import knobscope.SqlConnection;
import knobscope.TimedDB;
import knobscope.sql.Sql;
import site.ycsb.Client;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.Workload;
import site.ycsb.WorkloadException;

/**
 * The queries of TPC-H, revision 3. Properties: {@code tpch.scale_factor}, {@code tpch.data} (directory with the files
 * of tpchgen-cli, for a load). A load stores a table for each insert of YCSB. In a run every thread sends streams of
 * queries; a query is an operation of its own, Q1 to Q22, and must answer what it answered after loading.
 */
public final class TpchWorkload extends Workload implements Closing {
  private double scaleFactor;
  private Path data;
  private boolean loading;
  private final AtomicInteger nextTable = new AtomicInteger();
  private final Map<String, Long> loaded = new ConcurrentHashMap<>();
  private final Set<String> wrong = ConcurrentHashMap.newKeySet();

  @Override
  public void init(Properties properties) {
    scaleFactor = Double.parseDouble(properties.getProperty("tpch.scale_factor"));
    loading = !Boolean.parseBoolean(properties.getProperty(Client.DO_TRANSACTIONS_PROPERTY, "true"));
    if (loading) {
      data = Path.of(properties.getProperty("tpch.data"));
      properties.setProperty(Client.INSERT_COUNT_PROPERTY, String.valueOf(Tables.NAMES.size()));
    }
    properties.setProperty(Client.OPERATION_COUNT_PROPERTY, String.valueOf(Integer.MAX_VALUE)); // a run ends by time
  }

  /** What a thread works with: a connection for a load, streams of queries for a run. */
  @Override
  public Object initThread(Properties properties, int thread, int threads) throws WorkloadException {
    TimedDB client = TimedDB.ofThread();
    client.closeWith(this);
    try {
      Sql sql = sql(client.binding());
      Dialect dialect = dialect(client.binding());
      if (!loading) {
        return new Streams(sql, dialect.queries(scaleFactor), thread);
      }
      for (String statement : Texts.statements("schema.sql")) {
        sql.execute(statement);
      }
      sql.commit();
      return sql;
    } catch (SQLException | DBException e) {
      throw new WorkloadException(e);
    }
  }

  @Override
  public boolean doInsert(DB db, Object connection) {
    return TimedDB.ofThread().timed("LOAD", () -> {
      int table = nextTable.getAndIncrement();
      try {
        loaded.put(Tables.NAMES.get(table), Tables.load((Sql) connection, dialect(TimedDB.ofThread().binding()), table, data));
        return Status.OK;
      } catch (SQLException | IOException | DBException e) {
        throw new BindingException(e);
      }
    }).isOk();
  }

  @Override
  public boolean doTransaction(DB db, Object streams) {
    Streams own = (Streams) streams;
    String name = own.next();
    TimedDB.ofThread().timed(name, () -> {
      try {
        if (own.answersAsLoaded(name)) {
          return Status.OK;
        }
        wrong.add(name);
        return Status.UNEXPECTED_STATE;
      } catch (SQLException e) {
        throw new BindingException(e);
      }
    });
    return true;
  }

  /** Indexes, statistics, a count of all rows, and the answers with which those of later runs are compared. */
  @Override
  public void afterLoad(DB binding) throws DBException {
    try {
      Sql sql = sql(binding);
      Dialect dialect = dialect(binding);
      for (String statement : Texts.statements("indexes.sql")) {
        sql.execute(statement);
      }
      sql.commit();
      sql.execute(dialect.statistics);
      sql.commit();
      for (String table : Tables.NAMES) {
        Long rows = sql.one("select count(*) from " + table, row -> row.getLong(1));
        if (!rows.equals(loaded.get(table))) { // of a table that could not be stored there is no number at all
          throw new DBException(table + " has " + rows + " rows instead of " + loaded.get(table));
        }
      }
      Streams.storeAnswers(sql, dialect.queries(scaleFactor));
    } catch (SQLException e) {
      throw new DBException(e);
    }
  }

  /** One check per query: it succeeded in the measured window, and no answer was another one. */
  @Override
  public List<Check> afterRun(DB binding) {
    Set<String> measured = TimedDB.measured();
    List<Check> checks = new ArrayList<>();
    for (String name : Streams.NAMES) {
      String detail = wrong.contains(name) ? "another answer than after loading"
          : measured.contains(name) ? "" : "not once in the measured window: it is too short for a stream of queries";
      checks.add(new Check("TPC-H " + name, detail.isEmpty(), detail));
    }
    return checks;
  }

  private static Sql sql(DB binding) throws SQLException, DBException {
    return new Sql(lender(binding).connection());
  }

  private static Dialect dialect(DB binding) throws SQLException, DBException {
    return Dialect.of(lender(binding).connection());
  }

  private static SqlConnection lender(DB binding) throws DBException {
    if (binding instanceof SqlConnection lender) {
      return lender;
    }
    throw new DBException(binding.getClass().getName() + " has no SQL connection, which TPC-H needs");
  }
}
